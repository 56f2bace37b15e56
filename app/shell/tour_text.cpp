#include "app/shell/tour_text.h"

#include <utility>

namespace canopy::app {
namespace {

using Kind = TourWords::Kind;

TourWords plain(std::string text) {
  return {Kind::plain, std::move(text)};
}

TourStep one_token_at_a_time() {
  return {"One token at a time",
          {plain("A language model writes token by token: words, or pieces of them. For each token the whole big model "
                 "is read from memory once; that is a pass. Plain decoding gets one token from every pass.")},
          {{"pass 1", 1, 1}, {"pass 2", 1, 1}, {"pass 3", 1, 1}},
          {TourPart::chat}};
}

TourStep the_drafter_guesses(const TourFacts& facts) {
  return {
      "A small drafter guesses ahead",
      {plain("A much smaller model, the drafter, guesses what comes next: several tokens ahead, and several choices "
             "for each place. Here it made " +
             std::to_string(facts.guesses) +
             " guesses, numbered as they joined the tree. The thicker a branch, the surer it is of that guess.")},
      {},
      {TourPart::tree}};
}

TourStep all_at_once(const TourFacts& facts) {
  return {
      "All guesses are checked at once",
      {plain("The big model checks all " + std::to_string(facts.guesses) +
             " guesses in a single pass. On a GPU most of a pass is waiting for the model to come from memory, and it "
             "comes once for all of them: so checking many takes little longer than writing one token.")},
      {},
      {TourPart::tree}};
}

TourStep why_a_tree(const TourFacts& facts) {
  TourStep step{"Why a tree and not a chain?", {}, {}, {TourPart::path}};
  const std::string least = facts.chain_at_least ? "at least " : "";
  if (facts.favourite.empty()) {
    step.words = {
        plain("A guess that does not fit (orange) is dropped with everything behind it, so a single chain ends at its "
              "first one. The tree also holds second and third choices: the text can go on along another branch in the "
              "same pass.")};
    return step;
  }
  step.words = {plain("The drafter liked "),
                {Kind::rejected, facts.favourite},
                plain(" best, but the big model wanted "),
                {Kind::accepted, facts.taken},
                plain(". A guess that does not fit (orange) is dropped with everything behind it: a single chain "
                      "would have ended here with " +
                      least + std::to_string(facts.chain) + (facts.chain == 1 ? " token" : " tokens") +
                      ". The tree held both and brought " + std::to_string(facts.emitted) + " in the same pass.")};
  step.figure = {{"chain", facts.chain, 1}, {"tree", facts.emitted, facts.emitted > facts.right ? 1u : 0u}};
  return step;
}

TourStep the_models_own_text(const TourFacts& facts) {
  TourStep step{"The text stays the big model\u2019s own", {}, {}, {TourPart::path, TourPart::chat}};
  step.words = {
      plain("A guess is kept (blue) only where it is exactly the token that the big model chose itself. Where none "
            "fits, or none is left, the big model\u2019s own token is written (yellow)")};
  if (!facts.own.empty()) {
    step.words.push_back(plain(", here "));
    step.words.push_back({Kind::bonus, facts.own});
  }
  step.words.push_back(plain(". So the text is, word for word, what it would have written alone."));
  return step;
}

TourStep what_it_brings(const TourFacts& facts) {
  const std::string got = facts.tokens_per_pass.empty() ? "This reply got several tokens"
                                                        : "This reply got " + facts.tokens_per_pass + " tokens";
  std::string price =
      "Beside it stands the price: how long such a pass takes on this computer, counted in the time that "
      "plain decoding needs for one token";
  if (!facts.plain_tokens.empty())
    price += facts.slower ? ". Here that is " + facts.plain_tokens + " of them: more than a pass brings"
                          : ". Here that is only " + facts.plain_tokens;
  return {"What it brings, and what it costs",
          {plain(got + " from each pass on average, where plain decoding gets 1: that is the gain. " + price + ".")},
          {},
          {TourPart::numbers}};
}

TourStep when_it_does_not_pay(const TourFacts& facts) {
  const std::string here = facts.slower ? ", as here" : "";
  return {
      "When it does not pay",
      {plain("Where a pass costs more than it brings" + here +
             ", plain decoding is faster: on a computer without a GPU, which pays for every guess, and in text that is "
             "hard to guess. In your own chats Canopy measures gain and price and guesses less, or not at all; this "
             "recording "
             "always makes " +
             std::to_string(facts.guesses) + " guesses, to be looked at. The dashed box predicts how a GPU would do.")},
      {},
      {TourPart::numbers}};
}

}  // namespace

TourStep tour_step(uint32_t step, const TourFacts& facts) {
  switch (step) {
    case 0: return one_token_at_a_time();
    case 1: return the_drafter_guesses(facts);
    case 2: return all_at_once(facts);
    case 3: return why_a_tree(facts);
    case 4: return the_models_own_text(facts);
    case 5: return what_it_brings(facts);
    default: return when_it_does_not_pay(facts);
  }
}

}  // namespace canopy::app
