#pragma once
// Ctrl-C as a request to end the reply being written and to leave everything in order. Pressed again, it ends the
// program.

#include <stop_token>

namespace canopy::cli {

constexpr int kInterrupted = 130;  // exit code that shells use for Ctrl-C

/// Treats Ctrl-C as a request from now on. It also interrupts a read that waits for input.
void catch_interrupts();

/// Whether Ctrl-C was pressed since the start or the last forget_interrupt().
bool interrupted();

/// Is stopped when Ctrl-C is pressed. forget_interrupt() makes a new one: a token from before says nothing of later
/// presses.
std::stop_token interruption();

void forget_interrupt();

/// From now on takes note of being stopped and continued, as by Ctrl-Z and fg.
void catch_pauses();
/// Whether the program was continued since the last call.
bool take_pause();

}  // namespace canopy::cli
