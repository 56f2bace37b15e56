#pragma once
// How much of the model's context the shown chat takes, and what is done when it is full.

#include <cstddef>
#include <cstdint>
#include <string>

namespace canopy::app {

struct ViewModel;

struct ContextUse {
  uint32_t used = 0;     // tokens, of the chat as far as it was last sent and answered
  uint32_t planned = 0;  // tokens that the open model can hold; 0: no model
  uint32_t waiting = 0;  // of the attached files that go with the next question, as far as they are counted

  float share() const { return planned == 0 ? 0 : static_cast<float>(used + waiting) / static_cast<float>(planned); }
  /// Whether little is left: the meter turns amber.
  bool nearly_full() const { return share() >= 0.85f; }
};

ContextUse context_use(const ViewModel& view);

/// What the meter says when it is pointed at.
std::string context_words(const ContextUse& use);

/// Whether older turns can be left out of the next prompt, so that more than its question remains.
bool can_drop_turns(const ViewModel& view);

/// Leaves so many of the oldest turns out of later prompts that about half of the context is free, at least one. True
/// when the last question has no answer yet, so that it is to be answered now.
bool drop_oldest_turns(ViewModel& view);

/// Shows the card that gives the choice. prompt_tokens: of a prompt that was refused; 0: a reply came to the end.
void say_context_is_full(ViewModel& view, uint32_t prompt_tokens);

}  // namespace canopy::app
