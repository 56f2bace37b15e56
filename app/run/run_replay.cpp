#include <ostream>

#include "app/rounds/dump_trace.h"
#include "app/rounds/trace_log.h"
#include "app/run/autopilot.h"
#include "app/run/headless.h"
#include "app/run/run.h"
#include "engine/client/engine_client.h"

namespace canopy::app {
namespace {

class IdleEngine final : public EngineClient {
 public:
  void post(Command) override {}
  std::vector<Event> poll() override { return {}; }
  void set_wake(std::function<void()>) override {}
  std::vector<DeviceChoice> devices() const override { return {}; }
};

constexpr const char* kReplayShot = "out/replay.png";

int draw(const AppOptions& options, std::ostream& out, std::ostream& err) {
  {
    const TraceLog log(options.replay);  // throws with the text that the window would show on a card
    check_round(options.round.value_or(0), log.rounds());
    if (!log.reader().notice().empty()) err << "warning: " << log.reader().notice() << "\n";
  }
  IdleEngine engine;
  Headless headless(engine, settings_from(options), options.width, options.height, options.validate);
  show_replay(headless.app(), options);
  const std::string shot = options.shot.empty() ? kReplayShot : options.shot;
  write_png(headless.settled_frame(), shot);
  for (const std::string& message : headless.device().validation_messages()) err << message << "\n";
  if (!headless.device().validation_messages().empty()) return 1;
  out << "Picture: " << shot << "\n";
  return 0;
}

}  // namespace

int run_replay(const AppOptions& options, std::ostream& out, std::ostream& err) {
  try {
    if (!options.dump_json) return draw(options, out, err);
    dump_trace(options.replay, options.round, out);
    return 0;
  } catch (const Error& e) {
    err << e.what() << "\n";
    return 1;
  }
}

}  // namespace canopy::app
