#pragma once
// What an engine tells of itself and of its replies, as JSON and back: a Canopy that serves sends it to one that
// watches (docs/serving.md, "A window elsewhere"). A round has the fields of a recording's.

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include <nlohmann/json.hpp>

#include "engine/session/engine_client.h"

namespace canopy {

/// Of all that this file writes. A newer one may add fields and events; what it changes needs another number.
inline constexpr uint32_t kEventSchema = 1;

/// "canopy.prefill", "canopy.started", "canopy.text", "canopy.round", "canopy.finished": the name of an event of a
/// reply. Empty for all other events.
std::string_view event_name(const Event& event);

/// An event of a reply, which has a name, without the reply's id. `texts`: of the tokens of rounds.
nlohmann::ordered_json event_to_json(const Event& event, const TokenTexts& texts);

/// The other direction. Nothing for a name that is not known here, as a newer version may add some. Throws bad_input
/// naming field, value and what is allowed.
std::optional<Event> event_from_json(std::string_view name, const nlohmann::json& json, uint64_t reply_id);

/// A loaded model without its texts, its costs, its memory and its warnings, which are its own machine's.
nlohmann::ordered_json model_to_json(const ModelReady& model);
/// `texts` is null. Throws bad_input.
ModelReady model_from_json(const nlohmann::json& json);

/// The texts of all tokens from 0 to the last that has one. A text that is no UTF-8 is {"base64": "…"}.
nlohmann::ordered_json texts_to_json(const TokenTexts& texts, uint32_t count);
/// Throws bad_input.
std::shared_ptr<const TokenTexts> texts_from_json(const nlohmann::json& json);

}  // namespace canopy
