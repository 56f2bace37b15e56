#include "engine/speculation/ddtree.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <system_error>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/compute/sampling.h"

namespace canopy {

namespace {

struct SourceName {
  DraftSources bit;
  std::string_view name;
};
constexpr SourceName names_of_sources[] = {
    {kFromDflash, "dflash"}, {kFromSuffix, "suffix"}, {kFromRecycling, "recycling"}, {kFromEarlier, "earlier"},
    {kFromDraft, "draft"},   {kFromMtp, "mtp"},       {kFromEagle, "eagle3"},        {kFromAssistant, "assistant"}};

}  // namespace

std::vector<std::string_view> source_names(DraftSources sources) {
  std::vector<std::string_view> names;
  for (const SourceName& each : names_of_sources) {
    if ((sources & each.bit) != 0) names.push_back(each.name);
  }
  return names;
}

std::string list_of(DraftSources sources) {
  std::string list;
  for (const std::string_view name : source_names(sources)) list += (list.empty() ? "" : ",") + std::string(name);
  return list.empty() ? "none" : list;
}

DraftSources parse_sources(std::string_view list) {
  if (list == "none") return 0;
  DraftSources sources = 0;
  for (size_t first = 0; first <= list.size();) {
    const size_t end = std::min(list.find(',', first), list.size());
    const std::string_view name = list.substr(first, end - first);
    const auto* const known = std::ranges::find(names_of_sources, name, &SourceName::name);
    if (known == std::end(names_of_sources)) {
      throw bad_input("There is no source of drafts '" + std::string(name) +
                      "'; allowed: dflash, suffix, recycling, earlier, draft, mtp, eagle3 and assistant, with commas "
                      "in between, or none.");
    }
    sources |= known->bit;
    first = end + 1;
  }
  return sources;
}

void DraftTree::reset(uint32_t root_token) {
  nodes_.clear();
  nodes_.push_back({.token = root_token});
}

uint32_t DraftTree::add(uint32_t parent, uint32_t token, uint32_t rank, double log_q, double score,
                        DraftSources sources, WentOn went_on) {
  if (parent >= width()) {
    throw bad_input("A draft tree has no node " + std::to_string(parent) + " to add a child to; its nodes are 0 to " +
                    std::to_string(drafted()) + ".");
  }
  nodes_.push_back({token, parent, nodes_[parent].depth + 1, rank, log_q, score, sources, went_on});
  return drafted();
}

void DraftTree::cut(uint32_t width) {
  if (width == 0 || width > this->width()) {
    throw bad_input("A draft tree of width " + std::to_string(this->width()) + " cannot be cut to width " +
                    std::to_string(width) + "; allowed: 1 to " + std::to_string(this->width()) + ".");
  }
  nodes_.resize(width);
}

uint32_t DraftTree::child(uint32_t parent, uint32_t token) const {
  for (uint32_t node = parent + 1; node < width(); ++node) {
    if (nodes_[node].parent == parent && nodes_[node].token == token) return node;
  }
  return TreeNode::none;
}

// Best-first, a child comes before its less likely siblings.
uint32_t DraftTree::first_child(uint32_t parent) const {
  for (uint32_t node = parent + 1; node < width(); ++node) {
    if (nodes_[node].parent == parent) return node;
  }
  return TreeNode::none;
}

namespace {

[[noreturn]] void refuse_rate(const std::string& what) {
  throw bad_input(what + "; allowed: numbers from 0 to 1, one for each depth, at most " +
                  std::to_string(kMostAcceptRates) + " with commas in between, as in 0.8,0.7,0.6.");
}

}  // namespace

std::vector<double> parse_accept_rates(std::string_view list) {
  std::vector<double> rates;
  for (size_t first = 0; first <= list.size();) {
    const size_t end = std::min(list.find(',', first), list.size());
    const std::string_view text = list.substr(first, end - first);
    double rate = 0;
    const auto [read, error] = std::from_chars(text.data(), text.data() + text.size(), rate);
    const bool whole = error == std::errc() && read == text.data() + text.size();
    if (!whole || !(rate >= 0 && rate <= 1)) refuse_rate(quoted_name(text) + " is no rate of acceptance");
    rates.push_back(rate);
    first = end + 1;
  }
  validate_accept_rates(rates);
  return rates;
}

std::string list_of(std::span<const double> rates) {
  std::string list;
  for (const double rate : rates) {
    std::array<char, 32> text{};
    const auto written = std::to_chars(text.data(), text.data() + text.size(), rate);
    list += (list.empty() ? "" : ",") + std::string(text.data(), written.ptr);
  }
  return list;
}

void validate_accept_rates(std::span<const double> rates) {
  if (rates.size() > kMostAcceptRates) {
    refuse_rate("There are " + std::to_string(rates.size()) + " rates of acceptance");
  }
  for (const double rate : rates) {
    if (!(rate >= 0 && rate <= 1)) refuse_rate("A rate of acceptance is " + std::to_string(rate));
  }
}

double accept_draw(uint64_t seed, uint64_t turn, uint64_t place) {
  const auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
  // Counters of tokens have the number of a block of words where this has all bits, so the numbers are others.
  const PhiloxCounter words = philox4x32({0xFFFFFFFF, low(place), low(turn), high(turn)}, {low(seed), high(seed)});
  return static_cast<double>(words[0]) / 4294967296.0;
}

uint32_t token_by_rates(const DraftTree& tree, uint32_t node, uint32_t own, std::span<const double> rates, double draw,
                        uint32_t vocab, std::span<const uint32_t> stops) {
  const uint32_t first = tree.first_child(node);
  if (first == TreeNode::none) return own;
  const double rate = rates[std::min<size_t>(tree[node].depth, rates.size() - 1)];
  if (draw < rate) return tree[first].token;
  uint32_t token = own;
  for (uint32_t tried = 0; tried < vocab; ++tried) {
    const bool ends = tried > 0 && std::ranges::binary_search(stops, token);
    if (!ends && tree.child(node, token) == TreeNode::none) return token;
    token = (token + 1) % vocab;
  }
  return own;  // a vocabulary of children and stops alone
}

}  // namespace canopy
