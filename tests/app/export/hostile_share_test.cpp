// Recordings that were forged with true checksums: a page, a picture and an animation come of them, or a refusal.

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <span>

#include "app/export/animation.h"
#include "app/export/recording_page.h"
#include "app/export/round_picture.h"
#include "engine/base/bytes.h"
#include "engine/base/mapped_file.h"
#include "engine/base/text.h"
#include "tests/base/temp_folder.h"
#include "tests/trace/trace_builder.h"

namespace canopy::app {
namespace {

std::string written_trace(const std::filesystem::path& path) {
  test::TraceBuilder builder;
  {
    TraceWriter writer(path, builder.header(), builder.pieces());
    writer.begin(builder.begin(DecodeMode::tree));
    writer.prefilled(builder.prefill());
    for (int i = 0; i < 3; ++i) writer.append(builder.tree(6));
    writer.append(builder.plain());
    writer.end(builder.end());
  }
  return read_small_file(path, 1 << 20);
}

/// The trace with some bytes of one of its records changed.
std::string forged(const std::string& whole, std::mt19937_64& random) {
  Reader reader(std::as_bytes(std::span(whole)));
  std::string bytes(reader.text(trace::prologue_bytes, "prologue"));
  const size_t target = random() % 10;
  for (size_t index = 0; const auto record = trace::next_record(reader); ++index) {
    std::string payload(record->text());
    if (index == target && !payload.empty()) {
      for (size_t changes = 1 + random() % 3; changes > 0; --changes)
        payload[random() % payload.size()] = static_cast<char>(random());
      if (random() % 4 == 0) payload.resize(random() % payload.size());
    }
    trace::append_record(bytes, record->kind, payload);
  }
  return bytes;
}

TEST(HostileRecording, GivesAPageOrARefusalAndNothingElse) {
  const test::TempFolder folder;
  const std::string whole = written_trace(folder.path() / "whole.canopytrace");
  const std::filesystem::path file = folder.path() / "forged.canopytrace";
  std::mt19937_64 random(11);
  size_t shared = 0, refused = 0;
  for (int i = 0; i < 400; ++i) {
    std::ofstream(file, std::ios::binary) << forged(whole, random);
    try {
      const auto log = std::make_shared<const TraceLog>(file);
      const SharedRun run = run_of(log);
      const std::string page = recording_page(run, {0, log->rounds()});
      EXPECT_EQ(printable(page, page.size() + 1, LineBreaks::keep), page) << "no control character, valid UTF-8";
      const std::string svg = round_svg(*log, log->rounds() - 1, std::nullopt, {480, 320});
      EXPECT_EQ(printable(svg, svg.size() + 1, LineBreaks::keep), svg);
      if (i % 20 == 0) {
        EXPECT_FALSE(round_png(*log, 0, ThemeKind::dark, {480, 320}).empty());
        EXPECT_FALSE(animated_svg(run, {0, 1}, std::nullopt, {480, 400}).empty());
      }
      ++shared;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::bad_input) << e.what();
      ++refused;
    }
  }
  EXPECT_GT(shared, 40u);
  EXPECT_GT(refused, 40u);
}

}  // namespace
}  // namespace canopy::app
