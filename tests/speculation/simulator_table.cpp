#include "tests/speculation/simulator_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <numeric>

namespace canopy::test {
namespace {

constexpr uint32_t widest = 64;

void print_head() {
  std::printf("%-21s %-15s %4s %8s %8s %8s %15s %7s %7s %8s %6s %6s\n", "device", "text", "seed", "plain s", "ours",
              "behind", "best fixed", "its", "regret", "verified", "width", "chains");
  std::printf("%-21s %-15s %4s %8s %8s %8s %15s %7s %7s %8s %6s %6s\n", "", "", "", "", "/ plain", "rounds", "",
              "/ plain", "", "", "", "");
}

void print(const TableRow& row) {
  const std::string shape = row.best.width == 1 ? "plain" : row.best.chain ? "chain " : "tree ";
  const double round = std::max(1e-9, row.ours.longest_round_ms);
  std::printf("%-21s %-15s %4u %8.2f %8.3f %8.2f %15s %7.3f %7.3f %8u %6.1f %6u\n", row.device.c_str(),
              row.text.c_str(), row.seed, row.ar_ms / 1000, row.ours.ms / row.ar_ms, row.ours.worst_ms / round,
              (shape + (row.best.width == 1 ? "" : std::to_string(row.best.width))).c_str(), row.best.ms / row.ar_ms,
              row.regret(), row.ours.verified, row.ours.mean_width, row.ours.chains);
}

template <class Spec>
std::vector<Spec> named(const std::vector<Spec>& all, const std::vector<std::string>& names) {
  std::vector<Spec> result;
  for (const std::string& name : names) {
    const size_t before = result.size();
    for (const Spec& each : all) {
      if (each.name == name) result.push_back(each);
    }
    EXPECT_EQ(result.size(), before + 1) << "there is no " << name;
  }
  return result;
}

}  // namespace

std::vector<TraceSpec> simulated_texts() {
  return {
      {.name = "easy", .first = Ease::easy},
      {.name = "usual", .first = Ease::usual},
      {.name = "hard", .first = Ease::hard},
      {.name = "easy, too sure", .first = Ease::easy, .honesty = {1.3, 2.0}},
      {.name = "usual, unsure", .first = Ease::usual, .honesty = {0.8, 0.5}},
      {.name = "switching", .first = Ease::hard, .second = Ease::easy, .stretch = 200},
      {.name = "adversarial", .first = Ease::easy, .sulking = 60},
  };
}

std::vector<TraceSpec> texts_named(const std::vector<std::string>& names) {
  return named(simulated_texts(), names);
}

std::vector<DeviceSpec> devices_named(const std::vector<std::string>& names) {
  return named(simulated_devices(), names);
}

void run_table(const TableSpec& spec, const std::function<void(const TableRow&)>& visit) {
  print_head();
  for (unsigned seed = 1; seed <= spec.seeds; ++seed) {
    for (const TraceSpec& text : spec.texts) {
      const Trace trace(text, spec.tokens, seed);
      std::map<uint32_t, std::unique_ptr<Hindsight>> hindsights;  // by block size
      for (const DeviceSpec& each : spec.devices) {
        const VirtualDevice device(each, spec.tokens, seed);
        Controller controller(spec.options, each.block_size);
        TableRow row{.device = each.name,
                     .text = text.name,
                     .seed = seed,
                     .switching = text.stretch != 0,
                     .adversarial = text.sulking != 0};
        row.ours = run_adaptive(controller, trace, device, widest - 1);
        row.ar_ms = run_ar(trace, device);
        row.fixed = {{.ms = row.ar_ms}};
        if (spec.hindsight) {
          auto& hindsight = hindsights[each.block_size];
          if (hindsight == nullptr) hindsight = std::make_unique<Hindsight>(trace, each.block_size - 1, widest);
          row.fixed = hindsight->all(device);
        }
        row.best = *std::min_element(row.fixed.begin(), row.fixed.end());
        row.promises = &controller.promises();
        print(row);
        visit(row);
      }
    }
  }
}

void expect_bound(const TableRow& row) {
  EXPECT_LE(row.ours.worst_ms, 2 * row.ours.longest_round_ms) << row.device << ", " << row.text << ", " << row.seed;
  EXPECT_LE(row.ours.ms, 1.02 * row.ar_ms + 2 * row.ours.longest_round_ms) << row.device << ", " << row.text;
}

void Regrets::add(const TableRow& row) {
  if (row.adversarial) return;
  Sum& sum = sums_[{row.text, row.device}];
  sum.ours += row.ours.ms;
  sum.best += row.best.ms;
  sum.limit = row.switching ? 1.08 : 1.02;
  if (sum.fixed.empty()) {
    sum.fixed = row.fixed;
    return;
  }
  for (size_t way = 0; way < row.fixed.size(); ++way) sum.fixed[way].ms += row.fixed[way].ms;
}

void Regrets::expect_small() const {
  std::map<std::string, std::vector<double>> by_text;
  std::printf("regret over all seeds, against the best fixed way %s\n",
              best_ == Best::of_each_seed ? "of each seed" : "of all seeds");
  for (const auto& [name, sum] : sums_) {
    const double best =
        best_ == Best::of_each_seed ? sum.best : std::min_element(sum.fixed.begin(), sum.fixed.end())->ms;
    const double regret = sum.ours / best;
    std::printf("%-15s %-21s %.3f\n", name.first.c_str(), name.second.c_str(), regret);
    EXPECT_LE(regret, sum.limit + luck_) << name.second << ", " << name.first;
    by_text[name.first].push_back(regret);
  }
  for (const auto& [text, regrets] : by_text) {
    const double mean = std::accumulate(regrets.begin(), regrets.end(), 0.0) / static_cast<double>(regrets.size());
    std::printf("%-15s mean %.3f, worst %.3f\n", text.c_str(), mean, *std::max_element(regrets.begin(), regrets.end()));
  }
}

}  // namespace canopy::test
