#pragma once
// The threads that ask the hub for the window: one for searches and repositories, of which only the newest counts, one
// for what is known without the network, and one for downloads, one after the other.

#include <functional>
#include <memory>
#include <stop_token>
#include <variant>
#include <vector>

#include "app/state/background_answers.h"
#include "app/state/hub.h"
#include "engine/hub/hub_client.h"

namespace canopy::app {

/// Where the hub is, and how patient its client is.
struct HubPlace {
  HubSettings settings;
  HubLimits limits;
};
/// The place that the environment names. Called on the threads; what it throws becomes the answer's problem.
using HubPlaceMaker = std::function<HubPlace()>;
HubPlace usual_hub_place();

class HubDesk {
 public:
  explicit HubDesk(HubPlaceMaker place);
  /// Stops everything; a download goes on where it ended when it is asked for again. Waits a moment for the threads.
  ~HubDesk();
  HubDesk(const HubDesk&) = delete;
  HubDesk& operator=(const HubDesk&) = delete;

  /// `wake` is called on the threads when take() has something. Call before start().
  void set_wake(std::function<void()> wake);
  /// Begins what was asked for, and returns at once.
  void start(const HubWish& wish);
  /// What has been said since the last call, in order.
  std::vector<HubNews> take();

 private:
  struct Shared;
  struct Stoppable {  // a question with its own end
    HubQuestion question;
    std::stop_token stop;
  };
  struct Download {
    HubFetch fetch;
    std::stop_token stop;
  };
  std::shared_ptr<Shared> shared_;
  std::stop_source question_;
  BackgroundAnswers<Stoppable, std::monostate> questions_;
  BackgroundAnswers<HubHere, std::monostate> pairs_;
  BackgroundAnswers<Download, std::monostate> downloads_;
};

}  // namespace canopy::app
