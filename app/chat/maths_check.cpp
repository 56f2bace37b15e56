#include "app/chat/maths_check.h"

#include <imgui_internal.h>
#include <macro/macro.h>

#include <algorithm>
#include <string>

namespace canopy::app {
namespace {

constexpr size_t kLongestFormula = 4000;  // bytes
constexpr int kDeepestFormula = 30;       // groups in each other: MicroTeX calls itself for each

// Commands with that many arguments, each between blanks.
constexpr std::string_view kNoArgument =
    " hline nolimits limits displaystyle textstyle scriptstyle scriptscriptstyle quad normal thinspace medspace "
    "thickspace negthinspace negmedspace negthickspace surd nbsp joinrel underscore dots cr ";
constexpr std::string_view kOneArgument =
    " sqrt text mbox textbf textit textrm textsf texttt mathrm mathbf mathit mathbb mathcal mathfrak mathscr mathsf "
    "mathtt mathbfit mathnormal Bbb boldsymbol bold cal frak rm bf operatorname overline underline widehat hat "
    "widetilde "
    "tilde bar vec dot ddot dddot check breve acute grave mathring overrightarrow overleftarrow overleftrightarrow "
    "overbrace underbrace substack phantom hphantom vphantom boxed fbox cancel bcancel xcancel xrightarrow xleftarrow "
    "xleftrightarrow xRightarrow xLeftarrow xmapsto xhookrightarrow xrightleftharpoons pmod mod pod mathop mathbin "
    "mathrel "
    "mathord mathopen mathclose mathpunct mathinner not big Big bigg Bigg bigl Bigl biggl Biggl bigr Bigr biggr Biggr ";
// Those that MicroTeX expects to have a letter.
constexpr std::string_view kTyped = " mathop mathbin mathrel mathord mathopen mathclose mathpunct mathinner ";
constexpr std::string_view kTwoArguments =
    " frac dfrac tfrac cfrac binom dbinom tbinom overset underset stackrel textcolor ";
constexpr std::string_view kOptional = " sqrt xrightarrow xleftarrow xleftrightarrow xRightarrow xLeftarrow ";
constexpr std::string_view kEnvironments =
    " matrix pmatrix bmatrix Bmatrix vmatrix Vmatrix smallmatrix cases rcases aligned align gathered gather split "
    "equation eqnarray multline math array ";
constexpr std::string_view kBrackets =
    " lbrace rbrace langle rangle lfloor rfloor lceil rceil lvert rvert lVert rVert vert Vert uparrow downarrow "
    "Uparrow "
    "Downarrow lbrack rbrack backslash ";

bool holds(std::string_view list, std::string_view word) {
  const std::string wanted = " " + std::string(word) + " ";
  return !word.empty() && list.find(wanted) != std::string_view::npos;
}

bool is_command_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

class Checker {
 public:
  explicit Checker(std::string_view tex) : tex_(tex) {}

  bool run() { return list(End::text, {}) && at_ == tex_.size(); }

 private:
  enum class End { text, brace, right, environment };

  bool at_end() const { return at_ >= tex_.size(); }
  bool here(std::string_view words) const { return tex_.substr(at_).starts_with(words); }
  void skip_blanks() {
    while (!at_end() && (tex_[at_] == ' ' || tex_[at_] == '\n' || tex_[at_] == '\t')) ++at_;
  }

  bool take(char c) {
    if (at_end() || tex_[at_] != c) return false;
    ++at_;
    return true;
  }

  /// What stands up to `end`, and that end.
  bool list(End end, std::string_view name) {
    if (++depth_ > kDeepestFormula) return false;
    while (!at_end()) {
      const char c = tex_[at_];
      if (c == '}') {
        --depth_;
        return end == End::brace && take('}');
      }
      if (c == '&' && end != End::environment) return false;
      if (here("\\right") && !is_letter_at(at_ + 6)) {
        at_ += 6;
        --depth_;
        return end == End::right && bracket();
      }
      if (here("\\end{")) {
        at_ += 5;
        --depth_;
        return end == End::environment && tex_.substr(at_).starts_with(std::string(name) + "}") &&
               (at_ += name.size() + 1, true);
      }
      if (!item(end)) return false;
    }
    --depth_;
    return end == End::text;
  }

  /// Whether a group comes whose first part is a letter, upright or not.
  bool begins_with_letter() const {
    std::string_view group = tex_.substr(at_);
    for (const std::string_view begin : {"{", "\\mathrm{", "\\text{"})
      if (group.starts_with(begin)) group.remove_prefix(begin.size());
    return group.size() < tex_.size() - at_ && !group.empty() && is_command_letter(group[0]);
  }

  bool is_letter_at(size_t at) const { return at < tex_.size() && is_command_letter(tex_[at]); }

  bool item(End end) {
    const char c = tex_[at_];
    if (c == '{') return take('{') && list(End::brace, {});
    if (c == '^' || c == '_') return ++at_, argument();
    if (c == '\\') return command(end);
    if (c == '%' || c == '#' || c == '$' || c == '"') return false;
    return letter();
  }

  /// One character of UTF-8.
  bool letter() {
    if (static_cast<unsigned char>(tex_[at_]) < 0x80) return tex_[at_++] >= '\t';
    unsigned c = 0;
    const int length = ImTextCharFromUtf8(&c, tex_.data() + at_, tex_.data() + tex_.size());
    if (length < 2 || c == 0xFFFD) return false;
    at_ += static_cast<size_t>(length);
    return true;
  }

  bool argument() {
    skip_blanks();
    if (at_end() || std::string_view("}&^_%#$\"'").find(tex_[at_]) != std::string_view::npos) return false;
    if (tex_[at_] == '{') return take('{') && list(End::brace, {});
    if (tex_[at_] != '\\') return letter();
    const std::string_view name = name_at(at_ + 1);
    const bool alone = !holds(kOneArgument, name) && !holds(kTwoArguments, name) && name != "left" && name != "begin" &&
                       name != "middle" && name != "right" && name != "end";
    return alone && command(End::brace);
  }

  /// Arguments in which there is something.
  bool arguments(int count) {
    while (count-- > 0) {
      skip_blanks();
      const size_t words = at_end() ? at_ : std::min(tex_.find_first_not_of(" \n\t", at_ + 1), tex_.size());
      if (words < tex_.size() && tex_[at_] == '{' && tex_[words] == '}') return false;
      if (!argument()) return false;
    }
    return true;
  }

  std::string_view name_at(size_t at) const {
    size_t end = at;
    while (is_letter_at(end)) ++end;
    return tex_.substr(at, end - at);
  }

  bool command(End end) {
    const std::string_view name = name_at(at_ + 1);
    if (name.empty()) return sign(end);
    at_ += 1 + name.size();
    if (name == "left") return bracket() && list(End::right, {});
    if (name == "middle") return end == End::right && bracket();
    if (name == "begin") return environment();
    if (name == "hline" && end != End::environment) return false;
    if (name == "color") return colour();
    if (name == "textcolor") return colour() && arguments(1);
    if (name.starts_with("big") || name.starts_with("Big")) {
      if (holds(kOneArgument, name)) return bracket();
    }
    if (holds(kOptional, name)) {
      skip_blanks();
      if (take('[')) {
        const size_t close = tex_.find(']', at_);
        if (close == std::string_view::npos || close - at_ > 12) return false;
        if (tex_.substr(at_, close - at_).find_first_of("\\{}[$%#&^_") != std::string_view::npos) return false;
        at_ = close + 1;
      }
    }
    if (name == "text") return argument();
    if (holds(kTyped, name) && !begins_with_letter()) return false;
    if (holds(kOneArgument, name)) return arguments(1);
    if (holds(kTwoArguments, name)) return arguments(2);
    // Letters and signs are no macros.
    return holds(kNoArgument, name) || microtex::MacroInfo::get(std::string(name)) == nullptr;
  }

  /// A backslash and one character that is no letter.
  bool sign(End end) {
    if (at_ + 1 >= tex_.size()) return false;
    const char c = tex_[at_ + 1];
    at_ += 2;
    if (c == '\\') {
      if (end == End::brace || end == End::right) return false;
      const bool spaced = !at_end() && tex_[at_] == '[';  // an amount of space, which is not worth its dangers
      return !spaced;
    }
    return std::string_view(",:;!| {}%#&_$>").find(c) != std::string_view::npos;
  }

  bool bracket() {
    skip_blanks();
    if (at_end()) return false;
    if (std::string_view("()[]|./<>").find(tex_[at_]) != std::string_view::npos) return ++at_, true;
    if (here("\\{") || here("\\}") || here("\\|")) return at_ += 2, true;
    const std::string_view name = tex_[at_] == '\\' ? name_at(at_ + 1) : std::string_view();
    at_ += name.empty() ? 0 : name.size() + 1;
    return holds(kBrackets, name);
  }

  bool environment() {
    if (!take('{')) return false;
    const std::string_view name = name_at(at_);
    at_ += name.size();
    if (!holds(kEnvironments, name) || !take('}')) return false;
    if (name == "array") {
      if (!take('{')) return false;
      const size_t begin = at_;
      while (!at_end() && std::string_view("lcr| ").find(tex_[at_]) != std::string_view::npos) ++at_;
      if (at_ == begin || at_ - begin > 40 || !take('}')) return false;
    }
    return list(End::environment, name);
  }

  bool colour() {
    skip_blanks();
    if (!take('{')) return false;
    const std::string_view name = name_at(at_);
    at_ += name.size();
    return !name.empty() && take('}');
  }

  std::string_view tex_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

bool is_whole_formula(std::string_view tex) {
  return !tex.empty() && tex.size() <= kLongestFormula && Checker(tex).run();
}

}  // namespace canopy::app
