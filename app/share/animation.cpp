#include "app/share/animation.h"

#include <algorithm>
#include <vector>

#include "app/picture/svg.h"
#include "app/share/text_strip.h"

namespace canopy::app {
namespace {

constexpr size_t kTextLines = 3;
constexpr float kTextMargin = 20, kTextHeight = kTextLines * TextStrip::kLine + 20;

/// A still of an animation.
struct Still {
  RoundMoment moment;
  double ms = 0;  // that it is seen
};

/// Few steps, as the file holds each of them whole.
std::vector<Still> stills_of(bool drafted) {
  if (!drafted) return {{{Phase::commit, 1}, 900}};
  return {{{Phase::insert, 1}, 900}, {{Phase::walk, 1}, 700}, {{Phase::commit, 1}, 1600}};
}

/// Draws stills of a run.
class Studio {
 public:
  Studio(const SharedRun& run, const PictureSize& size)
      : run_(run), size_(size), text_(run, static_cast<float>(size.width) - 2 * kTextMargin - 10) {
    check_picture_size(size, static_cast<uint32_t>(kTextHeight));
  }

  RoundCard card(size_t round) const {
    return {*run_.log, round, {size_.width, size_.height - static_cast<uint32_t>(kTextHeight)}};
  }

  /// Draws into a picture of the whole size.
  void draw(Picture& picture, const RoundCard& card, size_t round, ThemeKind theme_kind,
            const RoundMoment& moment) const {
    const Theme& t = theme(theme_kind);
    const float width = static_cast<float>(size_.width), height = static_cast<float>(size_.height);
    const float top = height - kTextHeight;
    card.draw(picture, theme_kind, moment);
    picture.fill(rectangle({0, top}, {width, height}), t.panel);
    text_.draw(picture, t, {kTextMargin, top + 10}, kTextLines, round, moment.phase == Phase::commit);
  }

 private:
  const SharedRun& run_;
  PictureSize size_;
  TextStrip text_;
};

Picture empty_picture(const PictureSize& size) {
  return {static_cast<float>(size.width), static_cast<float>(size.height)};
}

}  // namespace

std::string animated_svg(const SharedRun& run, const RoundRange& range, std::optional<ThemeKind> theme,
                         const PictureSize& size, const ShareCallbacks& callbacks) {
  const Studio studio(run, size);
  Picture dark = empty_picture(size), light = empty_picture(size);
  SvgOptions options;
  options.description =
      "A small drafter guesses a tree of continuations; the big model reads it in one pass and keeps "
      "what it would have written itself.";
  for (size_t i = 0; i < range.count; ++i) {
    callbacks.step(i, range.count);
    const size_t round = range.first + i;
    const RoundCard card = studio.card(round);
    if (i == 0) options.title = "Canopy: " + card.title();
    for (const Still& still : stills_of(card.record().nodes.size() > 1)) {
      const std::string name = "g" + std::to_string(options.times.size());
      options.times.push_back({name, options.loop_ms, options.loop_ms + still.ms});
      options.loop_ms += still.ms;
      for (Picture* picture : {&dark, &light}) {
        if (theme && picture == &light) continue;
        picture->add(Group{name});
        studio.draw(*picture, card, round, theme.value_or(picture == &dark ? ThemeKind::dark : ThemeKind::light),
                    still.moment);
      }
    }
  }
  return svg_of(dark, options, theme ? nullptr : &light);
}

}  // namespace canopy::app
