#pragma once
// What the user reads: numbers with their units, moments by the local clock, names of models, and what the words of the
// window mean.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace canopy::app {

// Numbers as text: a space before the unit, commas between thousands, and only as many digits as a reader can use.

/// "12,345"
std::string grouped(uint64_t value);

/// With that many digits after the decimal point: "8.46".
std::string fixed(double value, int digits);
/// "1,103": whole numbers and thousands.
std::string whole(double value);
/// Tokens a second: "1,103", "6.5" below ten.
std::string speed(double tokens_per_second);
/// "9.97 ms", "404.3 ms", "12,345 ms": the larger the value, the fewer digits after the point.
std::string milliseconds(double value);
/// The same without the unit.
std::string millisecond_figure(double value);
/// "8.8%"
std::string percent(double share, int digits = 1);
/// "+0.9%", "−12.0%", "0.0%"
std::string signed_percent(double share);
/// "11.27 of 25.77 GB": in the unit of the whole.
std::string share_of_bytes(uint64_t bytes, uint64_t whole);
/// "×3.5"; "×0.04" below a tenth, so that nothing reads as none at all; "<×0.01"
std::string times(double ratio);
/// "1 pass", "73 passes"
std::string counted(uint64_t count, const char* one, const char* many);

// Moments as the user's clock shows them. Files store UTC; only what is read by people is local.

/// "2026-11-22 00:47:27" in the user's time zone (TZ, or else the system's) for milliseconds since 1970, UTC. Empty for
/// a moment that the system's calendar cannot express.
std::string local_time(int64_t milliseconds);

/// The same without seconds: "2026-11-22 00:47".
std::string local_minute(int64_t milliseconds);

/// The same with what the zone is ahead of UTC: "2026-11-22 00:47:27 +01:00". For files that are read elsewhere.
std::string local_time_and_zone(int64_t milliseconds);

/// Milliseconds since 1970 of "2026-11-22T03:16:49Z", UTC, as recordings have it; nullopt for text of any other form.
std::optional<int64_t> moment_in(const std::string& utc);

/// The name of a model for the user, with its quantization where that is known: "SmolLM2-135M-Instruct Q4_1". For a
/// GGUF it is the name of its file, which the user chose; the name inside the file is whatever its converter was given
/// ("Smollm2 135M 8k Lc100K Mix1 Ep2"). For a folder, whose name may be a hash, it is `name`.
std::string model_name(const std::string& name, const std::string& file_name, const std::string& quantization);

// What the words of this window mean, in one place: for the explanations on hover and for the overview of F1.

struct Term {
  std::string_view name;     // as a heading: "Tokens per pass"
  std::string_view aliases;  // other labels of the same thing, each between bars: "|tau|mean accepted length|"
  std::string_view meaning;  // one or two sentences
};

std::span<const Term> terms();

/// The term of this label; upper and lower case are the same. Null where there is none.
const Term* find_term(std::string_view label);

/// The same text in the words of the window (pass, guess, big model, plain), where the engine, a recording or a sweep's
/// file speaks those of the field: "ar" is "plain", "8 drafted nodes" are "8 guesses". For sentences and names of ways.
std::string in_plain_words(std::string_view text);

/// What a part of the window is for, in one sentence, by the name that it is drawn under; empty where nothing is known.
std::string_view region_words(std::string_view part);
/// The heading of that part for the user.
std::string_view region_title(std::string_view part);

}  // namespace canopy::app
