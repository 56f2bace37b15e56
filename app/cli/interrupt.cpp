#include "app/cli/interrupt.h"

#include <csignal>

namespace canopy::cli {
namespace {

volatile std::sig_atomic_t pressed = 0;

extern "C" void on_interrupt(int) {
  pressed = 1;
}

}  // namespace

void catch_interrupts() {
  pressed = 0;
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  // SA_RESETHAND: only the first Ctrl-C is caught, the second ends the program. No SA_RESTART: a waiting read returns.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
}

bool interrupted() {
  return pressed != 0;
}

void forget_interrupt() {
  catch_interrupts();
}

}  // namespace canopy::cli
