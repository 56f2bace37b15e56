#pragma once
// A made-up engine that compares: it answers Compare with the events of all its replies, each of the same text, with
// rounds that a drafter might have made.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/bench/sweep.h"
#include "tests/app/support/scripted_engine.h"

namespace canopy::test {

/// Pieces of a reply, one a token.
inline std::vector<std::string> compared_pieces() {
  const std::string text =
      "Walk both lists with two indices and always take the smaller head. Every item is copied once, so the cost is "
      "linear.\n\n```python\ndef merge(a, b):\n    \"\"\"Merge two sorted lists.\"\"\"\n    out, i, j = [], 0, 0\n    "
      "while i < len(a) and j < len(b):\n        if a[i] <= b[j]:\n            out.append(a[i])\n            i += 1\n  "
      " "
      "     else:\n            out.append(b[j])\n            j += 1\n    return out + a[i:] + b[j:]\n```\n";
  std::vector<std::string> pieces;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin + 1;
    while (end < text.size() && text[end] != ' ' && text[end] != '\n' && end - begin < 6) ++end;
    pieces.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return pieces;
}

struct ComparedSpeeds {
  double pass_ms = 6.3;  // of one row; a row more costs some of it
  uint32_t accepted_chain = 2, accepted_tree = 4;
};

inline RoundRecord compared_round(const WayToDecode& way, uint32_t number, const ComparedSpeeds& speeds) {
  RoundRecord round;
  round.round = number;
  round.mode = round.shape = way.mode;
  const uint32_t wave = number * 7 % 3;
  if (way.mode == DecodeMode::chain) round.width = 16;
  if (way.mode == DecodeMode::tree) round.width = way.budget + 1;
  if (way.mode == DecodeMode::adaptive) round.width = 24 + 8 * wave;
  if (way.mode == DecodeMode::chain) round.accepted = speeds.accepted_chain + (wave == 0 ? 1 : 0);
  if (way.mode == DecodeMode::tree || way.mode == DecodeMode::adaptive)
    round.accepted = speeds.accepted_tree - 1 + wave;
  round.ms.verify = speeds.pass_ms * (1 + 0.008 * round.width);
  round.ms.draft = round.width > 1 ? 1.9 : 0;
  round.ms.commit = 0.2;
  round.ms.other = 0.3;
  return round;
}

class ComparingEngine {
 public:
  explicit ComparingEngine(ScriptedEngine& engine) : engine_(engine) {}

  Compare command;
  ComparedSpeeds speeds;
  std::optional<uint32_t> differing;  // a column whose text differs from token 20 on

  void begin(const Compare& asked) {
    command = asked;
    sweep_ = {};
    sweep_.kind = asked.kind;
    sweep_.version = "0.1.0";
    sweep_.commit = "1a2b3c";
    sweep_.created = "2026-11-24T10:00:00Z";
    sweep_.settings = asked.settings;
    sweep_.baseline = asked.baseline;
    for (const ComparisonColumn& column : asked.columns) add(column);
    for (const ComparisonPrompt& prompt : asked.prompts)
      sweep_.prompts.push_back({prompt.id, prompt.category, damage_hash_text(prompt.turns.back().content)});
    engine_.publish(ComparisonBegun{asked.id, std::make_shared<const Sweep>(sweep_), {}});
    tell("Warming up");
    left_ = run_order(sweep_.counts(), 1);
    // Columns in their order, for pictures that do not depend on the draw.
    std::ranges::sort(left_, {}, [](const RunKey& key) { return std::tuple(key.repeat, key.prompt, key.contestant); });
  }

  /// Makes so many runs, all without a number.
  void make(size_t runs = SIZE_MAX) {
    for (; runs > 0 && !left_.empty(); --runs) run(left_.front());
  }
  /// Begins the next run and writes so many of its rounds.
  void write_some(uint32_t rounds) { write(left_.front(), rounds); }

  void finish(bool cancelled = false, const std::string& problem = {}) {
    engine_.publish(
        ComparisonFinished{command.id, std::make_shared<const Sweep>(sweep_), cancelled, command.file, problem});
  }
  const Sweep& sweep() const { return sweep_; }

 private:
  void add(const ComparisonColumn& column) {
    SweepSubject subject;
    subject.model = column.model.empty() ? "Qwen3-4B.Q4_K_M.gguf" : column.model;
    subject.target = column.model.empty() ? 0 : 1;
    subject.drafter = "Qwen3-4B-DFlash-b16.gguf";
    subject.block = 16;
    subject.kv = "f16";
    subject.device = column.device.empty() ? "Radeon RX 7900 XTX" : "GeForce RTX 4090";
    subject.device_type = column.server.empty() ? "discrete" : "server";
    subject.driver = "driver 1";
    auto known = std::ranges::find(sweep_.subjects, subject);
    if (known == sweep_.subjects.end()) known = sweep_.subjects.insert(known, subject);
    sweep_.contestants.push_back({column.way, static_cast<uint32_t>(known - sweep_.subjects.begin())});
  }

  void tell(const std::string& stage) {
    const uint64_t done = sweep_.runs.size(), total = sweep_.counts().total();
    engine_.publish(ComparisonProgress{command.id, stage, done, total, 0.5 * static_cast<double>(total - done), false});
  }

  MeasuredRun write(const RunKey& key, uint32_t most_rounds) {
    tell("Measuring");
    const bool shown = command.first_reply_id != 0 && key.repeat == 0;
    const uint64_t reply = shown ? command.first_reply_id + replies_++ : 0;
    engine_.publish(ComparisonRunBegun{command.id, key, reply});
    std::vector<std::string> pieces = compared_pieces();
    if (differing == key.contestant)
      for (size_t i = 20; i < pieces.size(); i += 9) pieces[i] = " not";
    MeasuredRun run;
    run.key = key;
    run.place = static_cast<uint32_t>(sweep_.runs.size());
    run.tokens = static_cast<uint32_t>(pieces.size());
    run.prefill_ms = 40;
    run.text_hash = "00000000000000aa";
    if (reply != 0) engine_.publish(ReplyStarted{reply, 24, 23, 40, 0});
    uint32_t at = static_cast<uint32_t>(pieces.front().size());
    if (reply != 0) engine_.publish(TextDelta{reply, pieces.front(), 1, 25, 0});
    const WayToDecode way = sweep_.contestants[key.contestant].way;
    for (size_t token = 1; token < pieces.size() && run.rounds < most_rounds;) {
      RoundRecord round = compared_round(way, run.rounds, speeds);
      round.accepted = std::min<uint32_t>(round.accepted, static_cast<uint32_t>(pieces.size() - token - 1));
      // No two repeats take the same time.
      round.ms.verify *= 1 + 0.004 * ((key.repeat * 5 + key.contestant * 3) % 4);
      RoundFinished finished;
      finished.reply_id = reply;
      finished.first_index = static_cast<uint32_t>(token);
      finished.text_begin = at;
      std::string text;
      for (uint32_t i = 0; i <= round.accepted; ++i, ++token) {
        text += pieces[token];
        at += static_cast<uint32_t>(pieces[token].size());
        round.emitted.push_back(static_cast<uint32_t>(token));
        finished.text_ends.push_back(at);
      }
      ++run.rounds;
      run.rows += round.width;
      run.widest = std::max(run.widest, round.width);
      run.decode_ms += round.ms.total();
      run.ms.draft += round.ms.draft;
      run.ms.verify += round.ms.verify;
      run.ms.commit += round.ms.commit;
      run.ms.other += round.ms.other;
      if (reply == 0) continue;
      engine_.publish(TextDelta{reply, text, static_cast<uint32_t>(token), 25, 0});
      finished.round = std::make_shared<const RoundRecord>(round);
      engine_.publish(finished);
    }
    if (differing == key.contestant) run.differs_at = 20;
    return run;
  }

  void run(const RunKey key) {
    const MeasuredRun made = write(key, UINT32_MAX);
    left_.erase(left_.begin());
    sweep_.runs.push_back(made);
    engine_.publish(ComparisonRun{command.id, made});
  }

  ScriptedEngine& engine_;
  Sweep sweep_;
  std::vector<RunKey> left_;
  uint64_t replies_ = 0;
};

}  // namespace canopy::test
