// Counts and drafts of a suffix trie: against the published implementation (suffix.json) and against counting by hand.

#include "engine/speculation/suffix_trie.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <stdexcept>
#include <string>

#include "engine/base/error.h"
#include "tests/model/golden_data.h"

namespace canopy {
namespace {

using nlohmann::json;
using Ids = std::vector<uint32_t>;

void expect_draft(const SuffixDraft& local, const SuffixDraft& global, const json& golden, const std::string& where) {
  const bool is_local = is_better_or_equal(local, global);
  const SuffixDraft& draft = is_local ? local : global;
  ASSERT_NEAR(draft.score, golden.at("score").get<double>(), 1e-5) << where;
  ASSERT_EQ(draft.nodes.size(), golden.at("tokens").size()) << where;
  if (draft.nodes.empty()) return;
  EXPECT_EQ(is_local ? "local" : "global", golden.at("source")) << where;
  EXPECT_EQ(draft.match, golden.at("match_len").get<uint32_t>()) << where;
  for (size_t i = 0; i < draft.nodes.size(); ++i) {
    EXPECT_EQ(draft.nodes[i].token, golden.at("tokens")[i].get<uint32_t>()) << where << ", node " << i;
    EXPECT_EQ(draft.nodes[i].parent, golden.at("parents")[i].get<uint32_t>()) << where << ", node " << i;
    EXPECT_NEAR(draft.nodes[i].p, golden.at("probs")[i].get<double>(), 1e-6) << where << ", node " << i;
  }
}

uint32_t count_of(const SuffixTrie& trie, const Ids& string) {
  SuffixTrie::Place place;
  for (const uint32_t token : string)
    if (!trie.follow(place, token)) return 0;
  return trie.count(place);
}

TEST(SuffixGolden, EveryDraftOfTheFile) {
  for (const json& golden : test::golden_json("suffix.json").at("cases")) {
    const auto depth = golden.at("max_depth").get<uint32_t>();
    const auto most = golden.at("max_cached_requests").get<int>();
    SuffixTrie global(depth);
    for (const json& request : golden.at("requests")) {
      auto text = request.at("prompt_ids").get<Ids>();
      const auto reply = request.at("reply_ids").get<Ids>();
      SuffixTrie local(depth);
      local.append(text);
      global.begin_text();
      if (most >= 0 && global.texts() > static_cast<size_t>(most)) global.forget_oldest();
      size_t written = 0;
      const auto write_until = [&](size_t end) {
        for (; written < end; ++written) {
          local.append(reply[written]);
          global.append(reply[written]);
          text.push_back(reply[written]);
        }
      };
      for (const json& step : request.at("steps")) {
        write_until(step.at("reply_tokens").get<size_t>());
        for (size_t i = 0; i < golden.at("params").size(); ++i) {
          const json& params = golden.at("params")[i];
          const SuffixSettings settings{params.at("max_spec").get<uint32_t>(), params.at("factor").get<double>(),
                                        params.at("offset").get<double>(), params.at("pmin").get<double>(),
                                        params.at("tree").get<bool>()};
          SuffixDraft of_local, of_global;
          SuffixSearch().draft(local, text, settings, of_local);
          SuffixSearch().draft(global, text, settings, of_global);
          expect_draft(of_local, of_global, step.at("drafts")[i],
                       golden.at("name").get<std::string>() + ", token " + std::to_string(written) + ", parameters " +
                           std::to_string(i));
        }
      }
      write_until(reply.size());
    }
    for (const json& each : golden.at("global_counts_at_end")) {
      EXPECT_EQ(count_of(global, each.at("string").get<Ids>()), each.at("count").get<uint32_t>()) << each;
    }
  }
}

// Few tokens, so that texts repeat, end within each other and are forgotten in each other's middle.
TEST(SuffixTrie, CountsEveryStringOfTheTextsThatAreLeft) {
  std::mt19937 random(7);
  for (int run = 0; run < 60; ++run) {
    const uint32_t depth = 1 + random() % 8, tokens = 1 + random() % 4;
    SuffixTrie trie(depth);
    std::vector<Ids> texts;
    for (int i = 0; i < 12; ++i) {
      trie.begin_text();
      texts.emplace_back();
      for (uint32_t left = random() % 30; left > 0; --left) {
        texts.back().push_back(random() % tokens);
        trie.append(texts.back().back());
      }
      if (texts.size() > 1 && random() % 3 == 0) {
        trie.forget_oldest();
        texts.erase(texts.begin());
      }
      std::map<Ids, uint32_t> counts;
      size_t all = 0;
      for (const Ids& text : texts) {
        all += text.size();
        for (size_t first = 0; first < text.size(); ++first)
          for (size_t end = first + 1; end <= text.size() && end - first <= depth; ++end)
            ++counts[Ids(text.begin() + static_cast<std::ptrdiff_t>(first),
                         text.begin() + static_cast<std::ptrdiff_t>(end))];
      }
      EXPECT_EQ(trie.tokens(), all);
      for (const auto& [string, count] : counts) {
        ASSERT_EQ(count_of(trie, string), count) << "run " << run;
        SuffixTrie::Place place;
        for (const uint32_t token : string) trie.follow(place, token);
        std::vector<SuffixTrie::Child> children;
        trie.children(place, children);
        for (const SuffixTrie::Child& child : children) {
          Ids longer = string;
          longer.push_back(child.token);
          ASSERT_EQ(child.count, counts[longer]) << "run " << run;
        }
      }
      for (uint32_t length = 1; length <= trie.own_end(); ++length) {
        const Ids end(texts.back().end() - static_cast<std::ptrdiff_t>(length), texts.back().end());
        ASSERT_EQ(trie.count(trie.end_of_text(length)), counts[end]) << "run " << run;
      }
    }
  }
}

TEST(SuffixTrie, ForgettingGivesItsMemoryBack) {
  SuffixTrie trie(64);
  std::mt19937 random(1);
  size_t most = 0;
  for (int text = 0; text < 200; ++text) {
    trie.begin_text();
    for (int i = 0; i < 1000; ++i) trie.append(random() % 5000);
    if (trie.texts() > 4) trie.forget_oldest();
    if (text == 20) most = trie.memory_bytes();
  }
  EXPECT_EQ(trie.tokens(), 4000u);
  EXPECT_LE(trie.memory_bytes(), 2 * most);
}

TEST(SuffixTrie, TextsOfATokenRepeatedStayShort) {
  SuffixTrie trie(64);
  for (int i = 0; i < 20000; ++i) trie.append(5);
  EXPECT_LT(trie.memory_bytes(), 1u << 20);
  SuffixDraft draft;
  SuffixSearch().draft(trie, Ids(64, 5), {}, draft);
  ASSERT_EQ(draft.nodes.size(), 24u);
  EXPECT_EQ(draft.match, 24u) << "enough for all nodes, and found more often than what is longer";
}

TEST(SuffixTrie, RefusesWhatItCannotHold) {
  for (const uint32_t depth : {0u, SuffixTrie::kMostDepth + 1}) {
    try {
      SuffixTrie trie(depth);
      FAIL() << depth;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("allowed: 1 to 256"), std::string::npos) << error.what();
    }
  }
  SuffixTrie trie(8);
  trie.append(1);
  EXPECT_THROW(trie.forget_oldest(), std::logic_error);
  SuffixDraft draft;
  SuffixSearch().draft(trie, Ids{}, {}, draft);
  EXPECT_TRUE(draft.nodes.empty());
  SuffixSearch().draft(trie, Ids{1}, {}, draft);
  EXPECT_TRUE(draft.nodes.empty());
}

}  // namespace
}  // namespace canopy
