#include "app/share/animation.h"

#include <algorithm>
#include <vector>

#include "app/picture/png.h"
#include "app/picture/raster.h"
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

/// Few steps, for a file that holds each of them whole.
std::vector<Still> few_stills(bool drafted) {
  if (!drafted) return {{{Phase::commit, 1}, 900}};
  return {{{Phase::insert, 1}, 900}, {{Phase::walk, 1}, 700}, {{Phase::commit, 1}, 1600}};
}

std::vector<Still> many_stills(const RoundRecord& record) {
  if (record.nodes.size() < 2) return {{{Phase::commit, 1}, 900}};
  std::vector<Still> stills;
  for (const float share : {0.35f, 0.7f, 1.0f}) stills.push_back({{Phase::insert, share}, 200});
  stills.push_back({{Phase::verify, 0.6f}, 380});
  const uint32_t steps = std::min(record.accepted + 1, 4u);
  for (uint32_t i = 1; i <= steps; ++i)
    stills.push_back({{Phase::walk, static_cast<float>(i) / static_cast<float>(steps)}, 220});
  stills.push_back({{Phase::commit, 1}, 1400});
  return stills;
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
    for (const Still& still : few_stills(card.record().nodes.size() > 1)) {
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

std::string animated_png(const SharedRun& run, const RoundRange& range, ThemeKind theme, const PictureSize& size,
                         float scale, const ShareCallbacks& callbacks) {
  const Studio studio(run, size);
  std::vector<std::pair<size_t, Still>> stills;
  for (size_t i = 0; i < range.count; ++i)
    for (const Still& still : many_stills(studio.card(range.first + i).record()))
      stills.emplace_back(range.first + i, still);
  std::optional<AnimatedPng> file;
  std::optional<RoundCard> card;
  for (size_t i = 0; i < stills.size(); ++i) {
    callbacks.step(i, stills.size());
    const auto& [round, still] = stills[i];
    if (i == 0 || stills[i - 1].first != round) card.emplace(studio.card(round));
    Picture picture = empty_picture(size);
    studio.draw(picture, *card, round, theme, still.moment);
    const Image frame = rasterize(picture, scale);
    if (!file) file.emplace(frame.width, frame.height, static_cast<uint32_t>(stills.size()));
    file->add(frame, static_cast<uint32_t>(still.ms));
  }
  return file->finish();
}

}  // namespace canopy::app
