#pragma once
// A model on another machine, behind a server: a Canopy, which tells every pass as the engine of this machine does, or
// another OpenAI-compatible server, which tells text and counts.

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "engine/net/endpoint_client.h"
#include "engine/session/engine_client.h"
#include "engine/trace/trace_records.h"
#include "engine/trace/trace_writer.h"

namespace canopy {

/// What a server of Canopy sends at most: a round of a large tree is half a megabyte, and a reply may have many.
inline constexpr StreamLimits kRoundsLimits{size_t{8} << 30, size_t{16} << 20};

/// What a Canopy says of itself at /v1/canopy; nothing where the server is none. Throws bad_input for a Canopy whose
/// events are of another schema or whose answer is wrong, unavailable with what to do where it cannot be asked.
std::optional<nlohmann::json> ask_canopy(EndpointClient& client, const std::stop_token& stop);

/// The fields of a request that a Canopy takes beside those of the interface: how the reply is drafted, and that its
/// passes are told.
nlohmann::json drafting_fields(DecodeMode mode, uint32_t budget, DraftSources sources);

/// Belongs to one thread.
class RemoteModel {
 public:
  using Publish = std::function<void(Event event, bool wake)>;

  /// Asks the server at command.path what it has. Throws bad_input for a wrong address or answer, unavailable with what
  /// to do, and cancelled. silence_s: see EndpointLimits; of a Canopy, which says every second that it is there.
  RemoteModel(const LoadModel& command, const std::function<void(const LoadProgress&)>& progress,
              const std::stop_token& stop, double silence_s = 20);

  const ModelReady& ready() const { return ready_; }
  const LoadModel& opened() const { return opened_; }
  const std::string& address() const { return ready_.server; }  // host and port
  /// The column of a comparison that writes with it.
  ComparisonColumn column(const WayToDecode& way) const;

  /// Has a reply written and publishes its events, as an engine of this machine does; ReplyFinished also where `stop`
  /// ended it, or where the connection broke in the middle, which a Failure then says. Throws where nothing of the
  /// reply came: what EndpointClient throws, and bad_input.
  void reply(const Generate& command, const Publish& publish, const std::stop_token& stop);

  /// Records the replies from now on, without the drafts of their passes. Throws what TraceWriter throws, and
  /// bad_input for a server that does not tell its passes.
  void record(const std::string& path, bool redact);
  Recording recording() const;
  /// Its last state.
  Recording end_recording();

 private:
  class Passes;
  class Plain;

  void connect_to_canopy(const nlohmann::json& about, const std::function<void(const LoadProgress&)>& progress,
                         const std::stop_token& stop);
  void connect_to_other(const std::stop_token& stop);
  void write_passes(const Generate& command, const Publish& publish, const std::stop_token& stop);
  void write_plain(const Generate& command, const Publish& publish, const std::stop_token& stop);
  nlohmann::json request_of(const Generate& command) const;
  [[noreturn]] void refuse(const EndpointAnswer& answer) const;

  LoadModel opened_;
  std::unique_ptr<EndpointClient> client_;
  std::string id_;  // of the model, for requests
  ModelReady ready_;
  TraceHeader header_;
  std::unique_ptr<TraceWriter> trace_;  // null while nothing is recorded
  std::string trace_name_;
};

}  // namespace canopy
