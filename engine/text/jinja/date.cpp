#include <array>
#include <cctype>
#include <ctime>

#include "engine/text/jinja/builtins.h"

namespace canopy::jinja {
namespace {

constexpr std::array<std::string_view, 12> months = {"January",   "February", "March",    "April",
                                                     "May",       "June",     "July",     "August",
                                                     "September", "October",  "November", "December"};
constexpr std::array<std::string_view, 7> days = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                  "Thursday", "Friday", "Saturday"};

bool is_leap(int year) {
  return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

// From 0; by the date, as whoever made the time may have left it out.
int day_of_year(const std::tm& time) {
  constexpr std::array<int, 12> before = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
  return before[static_cast<size_t>(time.tm_mon) % 12] + time.tm_mday - 1 +
         (time.tm_mon > 1 && is_leap(time.tm_year + 1900) ? 1 : 0);
}

struct IsoWeek {
  int year = 0, week = 0;
};

// ISO 8601: weeks begin on Mondays, and the first is the one with the first Thursday of the year.
IsoWeek iso_week(const std::tm& time) {
  const int year = time.tm_year + 1900;
  const int thursday = day_of_year(time) - (time.tm_wday + 6) % 7 + 3;
  const int days_of_year = is_leap(year) ? 366 : 365;
  if (thursday < 0) return {year - 1, (thursday + (is_leap(year - 1) ? 366 : 365)) / 7 + 1};
  if (thursday >= days_of_year) return {year + 1, 1};
  return {year, thursday / 7 + 1};
}

struct Part {
  std::string text;
  char padding = 0;  // what fills it up to `width`; none for names
  size_t width = 0;
};

Part number(int value, size_t width = 2, char padding = '0') {
  return {std::to_string(value), padding, width};
}

// One conversion of strftime in the C locale, whatever the locale of the process; nothing where it is not known.
std::optional<Part> date_part(char conversion, const std::tm& now) {
  const std::string_view month = months[static_cast<size_t>(now.tm_mon) % months.size()];
  const std::string_view day = days[static_cast<size_t>(now.tm_wday) % days.size()];
  const int year = now.tm_year + 1900;
  const int hour = now.tm_hour % 12 == 0 ? 12 : now.tm_hour % 12;
  const auto joined = [&](std::string_view format) {
    std::string text;
    for (const char c : format) {
      if (std::isalpha(static_cast<unsigned char>(c)) == 0) {
        text += c;
        continue;
      }
      const Part part = *date_part(c, now);
      if (part.text.size() < part.width) text.append(part.width - part.text.size(), part.padding);
      text += part.text;
    }
    return Part{text};
  };
  switch (conversion) {
    case 'a': return Part{std::string(day.substr(0, 3))};
    case 'A': return Part{std::string(day)};
    case 'b':
    case 'h': return Part{std::string(month.substr(0, 3))};
    case 'B': return Part{std::string(month)};
    case 'c': return joined("a b e H:M:S Y");
    case 'C': return number(year / 100);
    case 'd': return number(now.tm_mday);
    case 'D':
    case 'x': return joined("m/d/y");
    case 'e': return number(now.tm_mday, 2, ' ');
    case 'f': return number(0, 6);
    case 'F': return joined("Y-m-d");
    case 'g': return number(iso_week(now).year % 100);
    case 'G': return number(iso_week(now).year, 4);
    case 'H': return number(now.tm_hour);
    case 'I': return number(hour);
    case 'j': return number(day_of_year(now) + 1, 3);
    case 'k': return number(now.tm_hour, 2, ' ');
    case 'l': return number(hour, 2, ' ');
    case 'm': return number(now.tm_mon + 1);
    case 'M': return number(now.tm_min);
    case 'n': return Part{"\n"};
    case 'p': return Part{now.tm_hour < 12 ? "AM" : "PM"};
    case 'P': return Part{now.tm_hour < 12 ? "am" : "pm"};
    case 'r': return joined("I:M:S p");
    case 'R': return joined("H:M");
    case 's': {
      std::tm copy = now;
      copy.tm_isdst = -1;
      return Part{std::to_string(std::mktime(&copy))};
    }
    case 'S': return number(now.tm_sec);
    case 't': return Part{"\t"};
    case 'T':
    case 'X': return joined("H:M:S");
    case 'u': return number(now.tm_wday == 0 ? 7 : now.tm_wday, 1);
    case 'U': return number((day_of_year(now) + 7 - now.tm_wday) / 7);
    case 'V': return number(iso_week(now).week);
    case 'w': return number(now.tm_wday, 1);
    case 'W': return number((day_of_year(now) + 7 - (now.tm_wday + 6) % 7) / 7);
    case 'y': return number(year % 100);
    case 'Y': return number(year, 1);
    case 'z':
    case 'Z': return Part{};  // the time has no zone
    case '%': return Part{"%"};
    default: return std::nullopt;
  }
}

// The conversion behind a '%' that is at `at`, which moves behind it: the GNU flags - _ 0 ^ #, a width, E or O, a
// letter.
std::optional<std::string> conversion_at(std::string_view format, size_t& at, const std::tm& time) {
  constexpr size_t widest = 100;
  char padding = 0;
  bool upper = false, swap = false;
  size_t i = at + 1, width = 0;
  for (; i < format.size() && std::string_view("-_0^#").find(format[i]) != std::string_view::npos; ++i) {
    if (format[i] == '^') {
      upper = true;
    } else if (format[i] == '#') {
      swap = true;
    } else {
      padding = format[i];
    }
  }
  for (; i < format.size() && format[i] >= '0' && format[i] <= '9'; ++i) {
    width = std::min(width * 10 + static_cast<size_t>(format[i] - '0'), widest);
  }
  if (i < format.size() && (format[i] == 'E' || format[i] == 'O')) ++i;
  const auto part = i < format.size() ? date_part(format[i], time) : std::nullopt;
  if (!part) return std::nullopt;
  std::string text = part->text;
  if (swap && (format[i] == 'p' || format[i] == 'Z')) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  } else if (upper || swap) {
    for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  const char filler = padding == '_' ? ' ' : padding == '0' ? '0' : part->padding != 0 ? part->padding : ' ';
  const size_t wanted = width > 0 ? width : padding == '-' ? 0 : part->width;
  if (text.size() < wanted && padding != '-') text.insert(0, wanted - text.size(), filler);
  at = i + 1;
  return text;
}

}  // namespace

Value format_time(Context& context, const Text& format, const std::tm& time) {
  const std::string_view bytes = format.bytes();
  TextBuilder out(context);
  for (size_t at = 0; at < bytes.size();) {
    const Origin origin = format.origin(at);
    const auto text = bytes[at] == '%' ? conversion_at(bytes, at, time) : std::nullopt;
    if (text) {
      out.add(*text, origin);
    } else {
      out.add(format, at++, 1);  // what is no conversion stands for itself
    }
  }
  return out.take();
}

}  // namespace canopy::jinja
