#pragma once
// The tour of Watch: what it says at each step, where its card stands, and how it is drawn over the window.

#include <imgui.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "app/ui/panel.h"
#include "engine/speculation/ddtree.h"

namespace canopy::app {

// What the tour says at each step, with the words and figures of the recorded pass. Pure.

struct TourWords {
  enum class Kind { plain, accepted, rejected, bonus };
  Kind kind = Kind::plain;
  std::string text;
  bool operator==(const TourWords&) const = default;
};

/// A row of tokens: of them the last `bonus` are the big model's own.
struct TourBar {
  std::string name;
  uint32_t tokens = 0, bonus = 0;
};

/// Which parts of the window a step speaks of.
enum class TourPart { chat, tree, path, numbers };

struct TourStep {
  std::string title;
  std::vector<TourWords> words;
  std::vector<TourBar> figure;  // may be empty
  std::vector<TourPart> parts;
};

/// What is known of the pass on show.
struct TourFacts {
  uint32_t guesses = 0, right = 0, emitted = 0;
  DraftSources sources = kFromDflash;  // who guessed
  uint32_t match = 0;                  // tokens of the text's end that were found in it before
  std::string favourite, taken, own;   // where the path leaves the likeliest guess: both words; and the bonus
  uint32_t chain = 0;                  // tokens that a chain would have brought
  bool chain_at_least = false;
  std::string tokens_per_pass;  // of the reply, "5.3"; empty where it is not known
  std::string plain_tokens;     // that the pass took as long as, "11"; empty where it is not known
  bool slower = false;          // the pass took longer than plain decoding of what a pass of the reply brings
};

/// step: 0 ... kTourSteps - 1.
TourStep tour_step(uint32_t step, const TourFacts& facts);

// Where the tour's card stands and how wide it is. Pure arithmetic on pixels of the window.

/// What the card should not cover, as corners (x0, y0, x1, y1).
struct TourClear {
  std::vector<ImVec4> holes;  // what the step speaks of
  std::vector<ImVec4> path;   // pills of the accepted path and the bonus
  std::vector<ImVec4> words;  // the other words of the tree
  ImVec4 controls = {};       // the buttons of the tour, which the card never covers where it can be elsewhere
};

/// A size that the card can have. brief: it leaves something out, and so is for windows without room for the others.
struct TourCardForm {
  ImVec2 size;
  bool brief = false;
};

struct TourCard {
  ImVec2 pos, size;
  size_t form = 0;
};

/// The area that two rectangles have in common.
float overlap_of(const ImVec4& a, const ImVec4& b);

/// Chooses a place for the card in a window, beside the buttons, and one of its forms, the preferred one first. Best is
/// a place clear of all holes and of the path, near to a hole; it is found if there is one. Where no place is clear of
/// the holes, as with the whole tree, it is the one that covers the least of the path, then the fewest words. scale:
/// pixels for a unit of the design.
TourCard place_tour_card(const std::vector<TourCardForm>& forms, ImVec2 window, const TourClear& clear, float scale);

// The tour over the window: everything but the parts in question is dimmed, and a card explains them. Its
// buttons stand in the lower right corner in all steps.

/// The parts of the window on the screen, in pixels: corners (x0, y0, x1, y1). Parts that are not shown have no area.
struct TourPlaces {
  ImVec4 chat, tree, numbers;
  std::vector<ImVec4> path;          // at most two
  std::vector<ImVec4> pills, words;  // of the tree: on the accepted path, and all others
};

class TourOverlay {
 public:
  /// Draws the present step, and posts StepTour and ShowTour.
  void draw(const ViewModel& view, CommandSink& sink, const TourPlaces& places, const TourFacts& facts);

 private:
  void draw_card(ImDrawList* list, ImVec2 corner, const TourCardForm& form, const TourStep& step, uint32_t index);

  uint32_t drawn_step_ = ~0u;
};

}  // namespace canopy::app
