#include "app/base/terms.h"

#include <algorithm>
#include <string>

namespace canopy::app {
namespace {

constexpr Term kTerms[] = {
    {"Token", "|tokens|", "A piece of text as a model reads and writes it: often a word, a part of a word or a sign."},
    {"Pass", "|passes|one pass|",
     "One run of the big model over some tokens. It reads all of its weights once, and that is what takes the time."},
    {"Guess", "|guesses|draft|drafted|drafted token|",
     "A token that the drafter proposes. The big model checks it; only guesses that it agrees with become text."},
    {"Plain decoding", "|plain|ar|ar, no drafts|autoregressive|",
     "The usual way: the big model writes one token in each pass. Everything here is compared with it."},
    {"Big model", "|model|target|target model|",
     "The model whose text you get. Its words stay exactly what they would be without any guesses."},
    {"Drafter", "|draft model|speculator|",
     "A small, fast model that guesses the next tokens, several for every place, before the big model is asked."},
    {"Tree", "|draft tree|",
     "All guesses of a pass. Each branch is a way the text may go on; the big model checks all of them at once."},
    {"Node", "|nodes|", "One guess in the tree: a token in its place, after the tokens on the way to it."},
    {"Root", "|so far|", "The last token of the text so far. The tree grows from it."},
    {"Budget", "|n|size|tree size|n drafted|chosen n|",
     "How many guesses are drafted for a pass. More guesses find more tokens, and cost a wider pass."},
    {"Width", "|rows|row|mean width|", "How many tokens one pass reads: the guesses, and the root before them."},
    {"Depth", "|depths|accepted to depth|", "How many tokens ahead of the text a guess lies."},
    {"Rank", "", "The place of a guess among the drafter\u2019s guesses for the same spot; 0 is the likeliest."},
    {"Accepted", "|rounds by accepted tokens|",
     "A guess that the big model would have written itself. It becomes text without a pass of its own."},
    {"Rejected", "|rejected at the frontier|",
     "A guess where the big model would have written something else. What hangs behind it is lost too."},
    {"Not reached", "|unreached|",
     "A guess behind a rejected one. It was read in the same pass, but nothing depends on it any more."},
    {"Bonus", "|bonus token|",
     "The token that the big model writes itself where no guess fits. It comes free with the pass."},
    {"Tokens per pass", "|tau|\u03c4|\u03c4, emitted per round|tokens a pass|mean accepted length|",
     "How many tokens of text one pass of the big model brought. Plain decoding brings exactly 1."},
    {"Round", "|rounds|", "One step of the reply: guess, check all guesses in one pass, keep what fits."},
    {"Time of a round", "|round time|round time mean|round, ms|round ms|",
     "How long one step of the reply takes, on average: to guess, to check the guesses in one pass, and to keep what "
     "fits."},
    {"Acceptance", "|acceptance rate|node use|",
     "The share of the guesses that became text. A low share is no loss as long as a wide pass costs little more."},
    {"Cost of a pass", "|cost|pass cost|",
     "The time of a pass over all guesses, compared with a pass for a single token. On a GPU they are nearly the "
     "same."},
    {"S(N)", "|s(n), tok/s by n drafted|speed by budget|",
     "The expected speed for every number of guesses N: tokens that a pass would bring, divided by its time."},
    {"Times plain decoding", "|\u00d7 plain|\u00d7 plain here|\u00d7 plain there|times plain|",
     "How many times as fast as plain decoding of the same model on the same device. Above 1, guessing pays. Papers "
     "write it S(N)."},
    {"Ratio", "|times the baseline|here \u00d7 there|times theirs|",
     "How many times as fast this is as what it is compared with: above 1 it is faster, below 1 slower."},
    {"Speed", "|tok/s|tokens per second|tok/s \u00b1 sd|here, tok/s|there, tok/s|",
     "Tokens of text written in a second."},
    {"Confirmed text", "|confirmed|committed|",
     "Text that the big model has agreed with. It never changes afterwards."},
    {"Chain", "", "A tree with one branch: only the likeliest guess for every place."},
    {"Adaptive", "", "Chooses the number of guesses for every pass, and none where they do not pay."},
    {"Way to decode", "|way|ways to decode|",
     "How the reply was written: plain (AR), with a chain or a tree of guesses, or with as many as pay (Adaptive)."},
    {"Same text", "|text|texts the same|",
     "Whether the tokens are those of the way that the others are compared with. Guessing must never change them."},
    {"KV", "|kv cache|context|context used|",
     "What the model keeps of the text it has read. When it is full, the conversation is at its end."},
    {"Best widths in hindsight", "|hindsight|",
     "What the reply could have reached if the best number of guesses had been known before every pass."},
    {"Measured", "", "Timed on this computer while it ran."},
    {"Predicted", "", "Worked out from costs that were measured before, or from published figures of a device."},
    {"Replayed", "", "Read from a recording; nothing is computed now."},
    {"Draft q", "|q|", "How likely the drafter held this token, from 0 to 1."},
    {"Target p", "|p|", "How likely the big model holds this token in this place, from 0 to 1."},
    {"Path score", "",
     "The drafter\u2019s probabilities from the root to here, multiplied: how sure it is of the whole way."},
    {"Residuals", "|time error|residual|", "How far predicted times were from what passes really took."},
    {"Roofline", "",
     "The least time a pass can take: to read the weights, or to do the arithmetic, whichever is longer."},
};

struct Part {
  std::string_view name, title, words;
};

constexpr Part kParts[] = {
    {"Top bar", "Bar", "Which models run, on which device, and in which mode; view and layout are at its end."},
    {"Watch chat", "Chat",
     "Your conversation. Words with a tint were guessed by the drafter before they were written."},
    {"Numbers", "Numbers", "How many tokens a pass brings, and what a pass costs here: these two make the speed."},
    {"What if", "What if",
     "What other devices would make of the recording or the reply on show, computed from its guesses."},
    {"Devices", "Devices",
     "Each device with its speed over plain decoding, the widths that it would choose, and where its times come from."},
    {"Race", "Race", "The passes of all devices on one clock."},
    {"Caption", "This pass",
     "What happened in the pass on show, in one sentence. \u201cShow slowly\u201d takes it apart."},
    {"Tree", "Tree of guesses",
     "Every guess of the pass on show. The bright branch became text; thick branches are those the drafter was sure "
     "of."},
    {"Legend", "Legend", "What the signs in the tree mean, and how many guesses met each fate."},
    {"Budget line", "Guesses that pay",
     "Whether more or fewer guesses would have been faster; it unfolds to the curve."},
    {"Watch passes", "Time",
     "One bar for each pass of the reply: how much of it was accepted. Click one to see its tree."},
    {"Start", "Start page",
     "Ways to begin: a recorded demo, or a model of your own; below, the devices of this computer."},
    {"Compare", "Compare",
     "Ways to decode beside each other on one clock: who is fastest, by how much, and whether all wrote the same."},
    {"Sweep", "Sweep",
     "Many prompts, widths and repeats in one measurement; other people's results can be laid over it."},
    {"Status bar", "Status", "What the engine does now, how full the context is, and a recording that runs."},
    {"Chat", "Chat", "Your conversation. Words with a tint were guessed by the drafter before they were written."},
    {"History", "History", "Earlier conversations; a click opens one."},
    {"Round table", "Rounds", "Every round as a line of numbers."},
    {"Budget", "Budget", "Speed for every number of guesses, predicted and measured, and why this number was taken."},
    {"Residuals", "Residuals", "How far the predicted times were from the real ones."},
    {"Roofline", "Roofline", "What limits a pass on this device: reading weights, or arithmetic."},
    {"Live", "Statistics", "The reply so far in figures: speed, tokens per round, how deep guesses were accepted."},
    {"KV", "Memory of the text", "How much of the context the conversation fills, and what a round adds and drops."},
    {"Calibration", "Calibration", "What passes of each width cost on this device, as it was measured."},
    {"Log", "Log", "Messages of the program."},
    {"Timeline", "Time", "One bar for each round. Drag to go back; play, pause and step are beside it."},
};

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string lowered(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), lower);
  return small;
}

const Part* find_part(std::string_view name) {
  const auto found = std::ranges::find(kParts, name, &Part::name);
  return found == std::end(kParts) ? nullptr : &*found;
}

}  // namespace

std::span<const Term> terms() {
  return kTerms;
}

const Term* find_term(std::string_view label) {
  if (label.empty()) return nullptr;
  const std::string wanted = lowered(label), between = "|" + wanted + "|";
  for (const Term& term : kTerms)
    if (lowered(term.name) == wanted || term.aliases.find(between) != std::string_view::npos) return &term;
  return nullptr;
}

std::string_view region_words(std::string_view part) {
  const Part* found = find_part(part);
  return found ? found->words : std::string_view();
}

std::string_view region_title(std::string_view part) {
  const Part* found = find_part(part);
  return found ? found->title : part;
}

}  // namespace canopy::app
