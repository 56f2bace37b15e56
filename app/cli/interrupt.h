#pragma once
// Ctrl-C as a request: the reply under way ends and everything is put in order. Pressed again, it ends the program.

#include <stop_token>

namespace canopy::cli {

constexpr int kInterrupted = 130;  // exit code: what a shell reports for Ctrl-C

/// From now on Ctrl-C is a request. A read that waits for input is interrupted by it.
void catch_interrupts();

/// Whether Ctrl-C was pressed since the start or the last forget_interrupt().
bool interrupted();

/// Is stopped when Ctrl-C is pressed. forget_interrupt() makes a new one: a token from before says nothing of later
/// presses.
std::stop_token interruption();

void forget_interrupt();

}  // namespace canopy::cli
