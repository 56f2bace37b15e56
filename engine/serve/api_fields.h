#pragma once
// The fields of requests, whatever interface they are of: typed access that refuses wrong values by name, and the
// fields that all of them have.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/serve/api_request.h"

namespace canopy {

using ApiJson = nlohmann::ordered_json;  // tools are told to the model in the order in which they were written

/// Throw ApiError, status 400. `allowed`: what is, or what to do instead, without a full stop.
[[noreturn]] void refuse(const std::string& field, const std::string& sentence);
[[noreturn]] void refuse_value(const std::string& field, const ApiJson& value, const std::string& allowed);
/// Refuses a value of a known field that would need what is not there.
[[noreturn]] void refuse_undone(const std::string& field, const ApiJson& value, const std::string& allowed);
/// The same where the value is a type: of a block, an item, a tool.
[[noreturn]] void refuse_type(const std::string& field, const std::string& type, const std::string& allowed);

/// The place of an entry of a list: "messages[0]".
std::string place_in(const std::string& list, size_t index);

/// The fields of one object of a request. Null counts as absent.
class ApiFields {
 public:
  /// path: of the object, "messages[0]"; empty: the body. `object` must outlive this.
  ApiFields(const ApiJson& object, std::string path);

  const ApiJson* find(const char* field) const;
  std::string name(const char* field) const { return path_.empty() ? field : path_ + "." + field; }

  bool boolean(const char* field, bool fallback) const;
  std::string text(const char* field) const;
  std::string required_text(const char* field) const;
  /// One of these words; nothing where it is absent.
  std::optional<std::string> word(const char* field, const std::vector<std::string>& allowed) const;
  /// A whole number of that range, also written as 5.0, as some programs do.
  std::optional<int64_t> whole(const char* field, int64_t least, int64_t most) const;
  /// A number of that range; `from` and `to` say whether its ends are in it.
  float number(const char* field, float fallback, double least, double most, bool from = true, bool to = true) const;

 private:
  const ApiJson& object_;
  std::string path_;
};

/// Throws ApiError for what is no JSON, too deep, or has a key twice.
ApiJson parse_api_body(std::string_view body);

/// Fields that programs send to servers like this one, that would change the answer and that nothing here does.
void refuse_what_no_form_does(const ApiFields& fields);

// The fields that all requests may have, those of other interfaces and of this server included.

void read_sampling(const ApiFields& fields, const ApiLimits& limits, ApiRequest& request);
void read_stops(const ApiFields& fields, const char* name, ApiRequest& request);
void read_speculation(const ApiFields& fields, const ApiLimits& limits, ApiRequest& request);
/// What a window of another machine asks for; the turns are read before.
void read_canopy(const ApiFields& fields, const ApiLimits& limits, ApiRequest& request);

/// The list "tools"; null where there is none. what: its entries, for the refusal of a list that is too long.
const ApiJson* find_tools(const ApiFields& fields, const std::string& what);
/// Name and description of a tool that has both in itself; the name is added to those of the tools before.
ApiJson read_function(const ApiFields& tool, std::vector<std::string>& names);
/// Tools for the prompt: functions as /v1/chat/completions has them, [{"type": "function", "function": {"name", …}}],
/// their names, and ApiRequest::tool_choice, which is read before. Throws ApiError where they cannot be offered.
void offer_tools(const ApiJson& functions, std::vector<std::string> names, ApiRequest& request);

}  // namespace canopy
