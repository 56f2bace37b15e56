#include "app/state/words.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <utility>

#include "engine/base/figures.h"

namespace canopy::app {

std::string grouped(uint64_t value) {
  std::string digits = std::to_string(value);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<size_t>(at), 1, ',');
  return digits;
}

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string whole(double value) {
  constexpr double largest = 1e15;  // above this, a double cannot tell whole numbers apart
  if (!std::isfinite(value)) return "?";
  const double size = std::fmin(std::fabs(value), largest);
  const std::string digits = grouped(static_cast<uint64_t>(std::llround(size)));
  return value < 0 && digits != "0" ? "\u2212" + digits : digits;
}

std::string speed(double tokens_per_second) {
  return tokens_per_second >= 0 && tokens_per_second < 9.95 ? fixed(tokens_per_second, 1) : whole(tokens_per_second);
}

std::string millisecond_figure(double value) {
  const double size = std::fabs(value);
  if (size >= 999.95) return whole(value);  // this and more would be written as "1000.0"
  return fixed(value, size >= 99.995 ? 1 : 2);
}

std::string milliseconds(double value) {
  return millisecond_figure(value) + " ms";
}

std::string percent(double share, int digits) {
  return fixed(100 * share, digits) + "%";
}

std::string signed_percent(double share) {
  const std::string size = percent(std::fabs(share));
  return size == percent(0) ? size : (share < 0 ? "\u2212" : "+") + size;
}

std::string times(double ratio) {
  // Below 1 a tenth is much of it: a quarter is not 0.3.
  if (ratio >= 0.095 && ratio < 0.995) {
    std::string words = "\u00d7" + fixed(ratio, 2);
    if (words.ends_with('0')) words.pop_back();
    return words;
  }
  if (ratio >= 0.095) return "\u00d7" + fixed(ratio, 1);
  return ratio >= 0.0095 ? "\u00d7" + fixed(ratio, 2) : "<\u00d70.01";
}

std::string share_of_bytes(uint64_t bytes, uint64_t whole) {
  const std::string all = byte_figures(whole);  // "25.77 GB"
  const double unit = whole < 1'000'000 ? 1e3 : whole < 1'000'000'000 ? 1e6 : 1e9;
  return fixed(static_cast<double>(bytes) / unit, whole < 1'000'000'000 ? 1 : 2) + " of " + all;
}

std::string counted(uint64_t count, const char* one, const char* many) {
  return grouped(count) + " " + (count == 1 ? one : many);
}

namespace {

std::string formatted_time(int64_t milliseconds, const char* format) {
  // Downwards, also before 1970.
  const int64_t whole = milliseconds / 1000 - (milliseconds % 1000 < 0 ? 1 : 0);
  const std::time_t seconds = static_cast<std::time_t>(whole);
  ::tzset();  // localtime_r() need not look at TZ
  std::tm parts = {};
  char text[64];
  if (!::localtime_r(&seconds, &parts)) return "";
  return {text, std::strftime(text, sizeof text, format, &parts)};
}

/// Of the place's clock then, "+01:00". strftime()'s %z is the name of the zone on Windows.
std::string local_offset(int64_t milliseconds) {
  const auto seconds = static_cast<std::time_t>(milliseconds / 1000);
  std::tm here = {}, utc = {};
  if (!::localtime_r(&seconds, &here) || !::gmtime_r(&seconds, &utc)) return "";
  const int days = here.tm_year != utc.tm_year ? (here.tm_year > utc.tm_year ? 1 : -1) : here.tm_yday - utc.tm_yday;
  const int minutes = (days * 24 + here.tm_hour - utc.tm_hour) * 60 + here.tm_min - utc.tm_min;
  char text[32];
  std::snprintf(text, sizeof text, "%c%02d:%02d", minutes < 0 ? '-' : '+', std::abs(minutes) / 60,
                std::abs(minutes) % 60);
  return text;
}

}  // namespace

std::string local_time(int64_t milliseconds) {
  return formatted_time(milliseconds, "%Y-%m-%d %H:%M:%S");
}

std::string local_minute(int64_t milliseconds) {
  return formatted_time(milliseconds, "%Y-%m-%d %H:%M");
}

std::optional<int64_t> moment_in(const std::string& utc) {
  using namespace std::chrono;
  int y = 0, h = 0, min = 0, s = 0, used = 0;
  unsigned m = 0, d = 0;
  const int fields = std::sscanf(utc.c_str(), "%4d-%2u-%2uT%2d:%2d:%2dZ%n", &y, &m, &d, &h, &min, &s, &used);
  const year_month_day date{year(y), month(m), day(d)};
  const bool in_day = h >= 0 && h < 24 && min >= 0 && min < 60 && s >= 0 && s < 60;
  if (fields != 6 || static_cast<size_t>(used) != utc.size() || !date.ok() || !in_day) return std::nullopt;
  const auto time = sys_days(date) + hours(h) + minutes(min) + seconds(s);
  return duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

std::string local_time_and_zone(int64_t milliseconds) {
  return formatted_time(milliseconds, "%Y-%m-%d %H:%M:%S ") + local_offset(milliseconds);
}

namespace {

/// Whether text ends in `end`; upper and lower case ASCII letters are the same.
bool ends_in(std::string_view text, std::string_view end) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return text.size() >= end.size() &&
         std::equal(end.begin(), end.end(), text.end() - static_cast<std::ptrdiff_t>(end.size()),
                    [&](char a, char b) { return lower(a) == lower(b); });
}

}  // namespace

std::string model_name(const std::string& name, const std::string& file_name, const std::string& quantization) {
  std::string title = name;
  if (ends_in(file_name, ".gguf")) {
    title = file_name.substr(0, file_name.size() - 5);
    if (!quantization.empty() && ends_in(title, quantization)) {
      title.resize(title.size() - quantization.size());
      while (!title.empty() && std::string_view(".-_ ").find(title.back()) != std::string_view::npos) title.pop_back();
    }
    if (title.empty()) title = name;
  }
  if (title.empty()) title = file_name;
  return quantization.empty() ? title : title + " " + quantization;
}

namespace {

/// Names of files stay what they are: "small-draft.gguf".
bool in_a_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '/';
}

bool ends_a_word(std::string_view text, size_t end) {
  if (end >= text.size()) return true;
  return !in_a_word(text[end]) && !(text[end] == '.' && end + 1 < text.size() && in_a_word(text[end + 1]));
}

/// Replaces a phrase where it stands as whole words.
void replace_words(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    const size_t end = at + from.size();
    const bool whole_words = (at == 0 || !in_a_word(text[at - 1])) && ends_a_word(text, end);
    if (whole_words) text.replace(at, from.size(), to);
    at += whole_words ? to.size() : 1;
  }
}

/// The longest phrases first.
constexpr std::pair<std::string_view, std::string_view> kFieldToWindow[] = {
    {"drafted nodes", "guesses"},
    {"drafted node", "guess"},
    {"with drafts", "with guesses"},
    {"the target's", "the big model's"},
    {"Nothing was drafted", "Nothing was guessed"},
    {"nothing was drafted", "nothing was guessed"},
    {"a first draft", "a first guess"},
    {"a draft", "a guess"},
    {"the draft", "the guess"},
    {"draft", "guess"},
    {"drafts", "guesses"},
    {"drafted", "guessed"},
    {"Drafting", "Guessing"},
    {"drafting", "guessing"},
    {"verifying", "checking"},
    {"rounds", "passes"},
    {"round", "pass"},
    {"AR", "plain"},
    {"ar", "plain"},
};

}  // namespace

std::string in_plain_words(std::string_view text) {
  std::string words(text);
  for (const auto& [from, to] : kFieldToWindow) replace_words(words, from, to);
  return words;
}

namespace {

constexpr Term kTerms[] = {
    {"Token", "|tokens|", "A piece of text as a model reads and writes it: often a word, a part of a word or a sign."},
    {"Pass", "|passes|one pass|round|rounds|",
     "One run of the big model over some tokens. It reads all of its weights once, and that is what takes the time."},
    {"Guess", "|guesses|draft|drafted|drafted token|node|nodes|",
     "A token that the drafter or the text before proposes. The big model checks it; only guesses that it agrees with "
     "become text."},
    {"Plain decoding", "|plain|ar|ar, no drafts|autoregressive|",
     "The usual way: the big model writes one token in each pass. Everything here is compared with it. Papers call it "
     "AR, autoregressive."},
    {"Big model", "|model|target|target model|",
     "The model whose text you get. Its words stay exactly what they would be without any guesses. Papers call it the "
     "target."},
    {"Drafter", "|draft model|speculator|",
     "A small, fast model that guesses the next tokens, several for every place, before the big model is asked."},
    {"MTP head", "|mtp|multi-token prediction|nextn|",
     "A part of some big models, trained to guess the tokens after the next one. It guesses from what the model has "
     "just computed."},
    {"EAGLE-3 head", "|eagle|eagle3|eagle-3|",
     "A small part trained for one big model. It guesses the next tokens one after another from what three layers of "
     "the model have just computed."},
    {"Assistant", "|assistants|gemma4-assistant|",
     "A small model made for one Gemma 4. It guesses the next tokens one after another, and looks up what the big "
     "model keeps of the text instead of reading it."},
    {"Guesses from the text", "|text drafts|text draft|suffix decoding|prompt lookup|",
     "Guesses found in the text itself, without a drafter: what followed the same words earlier in the chat. The field "
     "calls it suffix decoding or prompt lookup."},
    {"Earlier replies", "|earlier|",
     "What the model wrote in other chats, kept on this computer to guess from. A deleted chat\u2019s are forgotten "
     "with it; recordings never use them."},
    {"Recycled guesses", "|recycled drafts|recycling|token recycling|recycled|",
     "Guesses from what the big model said lately, without a drafter: the tokens that it found likeliest when it last "
     "read the same one. The field calls it token recycling."},
    {"Tree", "|draft tree|",
     "All guesses of a pass. Each branch is a way the text may go on; the big model checks all of them at once."},
    {"Root", "|so far|", "The last token of the text so far. The tree grows from it."},
    {"Budget", "|n|size|tree size|guesses of a tree|",
     "How many guesses a pass has, N in papers. More guesses find more tokens, and cost a wider pass."},
    {"Width", "|rows|row|mean width|", "How many tokens one pass reads: the guesses, and the root before them."},
    {"Depth", "|depths|accepted to depth|", "How many tokens ahead of the text a guess lies."},
    {"Found in the text", "|from the text|text alone|from the text alone|",
     "A guess that stood behind the same words before, here or in an earlier reply: a filled corner marks it. Its "
     "other corners are square where "
     "the drafter did not guess it too."},
    {"Rank", "", "The place of a guess among the guesses for the same spot; 0 is the likeliest."},
    {"Accepted", "|passes by accepted tokens|passes by right guesses|",
     "A guess that the big model would have written itself. It becomes text without a pass of its own."},
    {"Rejected", "|rejected at the frontier|",
     "A guess where the big model would have written something else. What hangs behind it is lost too."},
    {"Not reached", "|unreached|",
     "A guess behind a rejected one. It was read in the same pass, but nothing depends on it any more."},
    {"Bonus", "|bonus token|",
     "The token that the big model writes itself where no guess fits. It comes free with the pass."},
    {"Tokens per pass", "|tau|\u03c4|tokens a pass|mean accepted length|",
     "How many tokens of text one pass of the big model brought, \u03c4 in papers. Plain decoding brings exactly 1."},
    {"Time of a pass", "|pass time|pass, ms|pass ms|round ms|",
     "How long a pass takes, on average: to guess, to check the guesses in one run of the big model, and to keep what "
     "fits."},
    {"Acceptance", "|acceptance rate|guesses used|",
     "The share of the guesses that became text. A low share is no loss as long as a wide pass costs little more."},
    {"Cost of a pass", "|cost|pass cost|",
     "The time of a pass over all guesses, on average, compared with a pass for a single token. On a GPU they are "
     "nearly the same."},
    {"Speed by guesses", "|s(n)|speed by budget|",
     "The expected speed for every number of guesses, S(N) in papers: tokens that a pass would bring, divided by its "
     "time."},
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
     "How the reply was written: plainly, with a chain or a tree of guesses, or with as many as pay (Adaptive)."},
    {"Same text", "|text|texts the same|",
     "Whether the tokens are those of the way that the others are compared with. Guessing must never change them."},
    {"KV", "|kv cache|context|context used|",
     "What the model keeps of the text it has read. When it is full, the conversation is at its end."},
    {"Chosen", "", "The number of guesses that a pass really had, where Canopy chose it."},
    {"Expected best", "|expected|",
     "The number of guesses that promised the highest speed before the pass, by what is known of the text and the "
     "device."},
    {"Best afterwards", "|best widths in hindsight|hindsight|",
     "The number of guesses that would have been fastest, as one knows only when the pass has shown which of them "
     "fit."},
    {"Measured", "", "Timed on this computer while it ran."},
    {"Predicted", "", "Worked out from costs that were measured before, or from published figures of a device."},
    {"Replayed", "", "Read from a recording; nothing is computed now."},
    {"Held likely", "|draft q|q|", "How likely this token was held to be when it was guessed, from 0 to 1: q."},
    {"Big model\u2019s", "|target p|p|", "How likely the big model holds this token in this place, from 0 to 1: p."},
    {"Path score", "",
     "The probabilities of the guesses from the root to here, multiplied: how sure the whole way was held to be."},
    {"Residuals", "|time error|residual|", "How far predicted times were from what passes really took."},
    {"Roofline", "",
     "The least time a pass can take: to read the weights, or to do the arithmetic, whichever is longer."},
};

struct Part {
  std::string_view name, title, words;
};

constexpr Part kParts[] = {
    {"Top bar", "Bar",
     "Which models run, on which device or at which engine elsewhere, and in which mode; view and layout are at its "
     "end."},
    {"Watch chat", "Chat",
     "Your conversation. Words with a tint were guessed before they were written; a guess that was found in the text "
     "lights up the place where it stood. A line below each reply compares its speed with plain decoding. A reply that "
     "repeats itself ends. Chips above the box: a system prompt, attached files. Where passes take other times by now "
     "than were measured, a line offers to measure them again."},
    {"Numbers", "Numbers",
     "How many tokens a pass brings and how long it takes, both on average over the reply so far: divided, they are "
     "its speed. \u201cguess\u201d and \u201cplain\u201d say how the next reply is written. The dashed figure is "
     "predicted for another device; a click chooses which."},
    {"What if", "What if",
     "What other devices would make of the recording or the reply on show, computed from its guesses."},
    {"Devices", "Devices",
     "Each device with its speed over plain decoding, the widths that it would choose, and where its times come from. "
     "Its name opens the list of devices, and a form for one of your own."},
    {"Race", "Race", "The passes of all devices on one clock."},
    {"Caption", "This pass",
     "What happened in the pass on show, in one sentence, and how long it took. \u201cShow slowly\u201d takes it "
     "apart."},
    {"Tree", "Tree of guesses",
     "Every guess of the pass on show. The bright branch became text; thick branches are the surer guesses."},
    {"Legend", "Legend", "What the signs in the tree mean, and how many guesses met each fate."},
    {"Budget line", "Guesses that pay",
     "Whether more or fewer guesses would have been faster; it unfolds to the curve. \u201cGuess it\u201d makes a game "
     "of it."},
    {"Watch passes", "Time",
     "One bar for each pass, reply after reply: how many tokens it brought. Click one to see its tree."},
    {"Start", "Start page",
     "Ways to begin: a recorded demo, or a model of your own; below, the devices of this computer."},
    {"Compare", "Compare",
     "Ways to decode beside each other on one clock: who is fastest, by how much, and whether all wrote the same. The "
     "name of a column opens its way, its guesses and its device."},
    {"Sweep", "Sweep",
     "Many prompts, widths and repeats in one measurement, chosen at its side; other people's results can be laid over "
     "it, and one that was not finished goes on."},
    {"Models", "Models",
     "Models and drafters to get from a hub (Hugging Face, unless you named another), what of them fits this device, "
     "and those that are on this computer already. Nothing is asked of the network before you search or fetch."},
    {"Status bar", "Status",
     "What the engine does now, how full the context is, what is served, and a recording that runs."},
    {"Chat", "Chat",
     "Your conversation. Words with a tint were guessed before they were written; a guess that was found in the text "
     "lights up the place where it stood. A reply that repeats itself ends. Chips above the box: a system prompt, "
     "attached files."},
    {"History", "History",
     "Earlier conversations, to search, pin, rename and delete, with undo, and what other programs ask of the served "
     "model; a click opens one."},
    {"Watch chats", "Chats",
     "All your conversations; a click opens one, a double click renames it. Pin, delete and search them here; a "
     "deletion can be undone. Below them: what other programs ask of the model, where it is served; a click shows it "
     "live."},
    {"Passes", "Passes", "Every pass as a line of numbers."},
    {"Budget", "Budget", "Speed for every number of guesses, predicted and measured, and why this number was taken."},
    {"Residuals", "Residuals", "How far the predicted times were from the real ones."},
    {"Roofline", "Roofline", "What limits a pass on this device: reading weights, or arithmetic."},
    {"Live", "Statistics", "The reply so far in figures: speed, tokens per pass, how deep guesses were accepted."},
    {"KV", "Memory of the text", "How much of the context the conversation fills, and what a pass adds and drops."},
    {"Calibration", "Calibration", "What passes of each width cost on this device, as it was measured."},
    {"Log", "Log", "Messages of the program."},
    {"Timeline", "Time", "One bar for each pass. Drag to go back; play, pause and step are beside it."},
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
