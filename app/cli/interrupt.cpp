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
  // Once: the second Ctrl-C takes the default action. No restart: a waiting read comes back.
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
