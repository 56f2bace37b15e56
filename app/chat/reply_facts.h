#pragma once

#include <string>
#include <vector>

#include "app/conversation/message.h"

namespace canopy::app {

/// The footer of a finished reply: "439 tok/s  τ 4.14  21 rounds", and why it ended when that is not the usual reason.
std::vector<std::string> reply_facts(const Message& message);

/// What its tooltip adds: when, with which model and parameters, the prompt; and which of it was measured.
std::string reply_details(const Message& message);

}  // namespace canopy::app
