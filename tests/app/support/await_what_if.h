#pragma once
// Waits for what other devices would make of the rounds on show.

#include <chrono>
#include <thread>

#include "app/app.h"

namespace canopy::test {

/// False when it takes longer than a test may wait.
inline bool await_what_if(app::App& app) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto answered = [&] {
    const bool watch = app.view().shell.layout == app::WindowLayout::watch;
    const app::WhatIfAsked& state = watch ? app.view().what_if.chip : app.view().what_if;
    return state.answer.whole && state.answer.number == state.asked;
  };
  for (app.pump(); !answered(); app.pump()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

/// Waits for a recording of what another device would have done.
inline bool await_as_if(app::App& app) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (app.pump(); app.view().what_if.writing; app.pump()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace canopy::test
