#include "app/chat/maths.h"

#include <imgui_internal.h>
#include <microtex.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "app/chat/maths_check.h"
#include "app/ui/look.h"
#include "engine/base/embedded_file.h"

CANOPY_EMBED_FILE(maths_metrics, CANOPY_MATHS_FONT_DIR "/latinmodern-math.clm1");
CANOPY_EMBED_FILE(maths_font, CANOPY_MATHS_FONT_DIR "/latinmodern-math.otf");

namespace canopy::app {
namespace {

constexpr float kTypesetSize = 100;  // of the text, when MicroTeX places it
constexpr float kMostEms = 400;      // a formula that is larger is no formula: \rule{9999em}{9999em}
constexpr size_t kFormulasKept = 1000;
// Variants of a glyph (a taller bracket) are no characters of their own, so all glyphs are asked for by number, counted
// from here. What is below are characters, which Dear ImGui asks every font for; tables of a font end at its last
// glyph.
constexpr uint32_t kFirstGlyph = 0x100, kGlyphs = 4802;
constexpr const char* kMathsFont = "Latin Modern Math";  // its ascent and descent are one em together

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// Takes MicroTeX's strokes down. What it cannot hold (turned or mirrored text) makes the formula fail.
class Recorder : public microtex::Graphics2D {
 public:
  Maths maths;
  bool failed = false;
  bool has_red = false;  // so MicroTeX writes commands that it does not know, and letters that its font lacks

  void setColor(microtex::color c) override {
    colour_ = c;
    has_red |= c == microtex::red;
  }
  microtex::color getColor() const override { return colour_; }
  void setStroke(const microtex::Stroke& stroke) override { stroke_ = stroke; }
  const microtex::Stroke& getStroke() const override { return stroke_; }
  void setStrokeWidth(float width) override { stroke_.lineWidth = width; }
  void setDash(const std::vector<float>& dash) override { dash_ = dash; }
  std::vector<float> getDash() override { return dash_; }
  microtex::sptr<microtex::Font> getFont() const override { return font_; }
  void setFont(const microtex::sptr<microtex::Font>& font) override { font_ = font; }
  float getFontSize() const override { return size_; }
  void setFontSize(float size) override { size_ = size; }
  void translate(float dx, float dy) override { x_ += dx * sx_, y_ += dy * sy_; }
  void scale(float sx, float sy) override {
    sx_ *= sx, sy_ *= sy;
    failed |= sx <= 0 || sy <= 0;
  }
  void rotate(float angle) override { failed |= angle != 0; }
  void rotate(float angle, float, float) override { failed |= angle != 0; }
  void reset() override { x_ = y_ = 0, sx_ = sy_ = 1; }
  float sx() const override { return sx_; }
  float sy() const override { return sy_; }

  void drawGlyph(microtex::u16 glyph, float x, float y) override {
    maths.letters.push_back({glyph, size_ * sy_ / kTypesetSize, at_x(x), at_y(y)});
  }
  void write(const std::string& text, float size, float x, float y) {
    maths.words.push_back({text, size * sy_ / kTypesetSize, at_x(x), at_y(y)});
  }

  // Outlines of glyphs, which are not asked for as the font has them.
  bool beginPath(microtex::i32) override { return false; }
  void moveTo(float, float) override {}
  void lineTo(float, float) override {}
  void cubicTo(float, float, float, float, float, float) override {}
  void quadTo(float, float, float, float) override {}
  void closePath() override {}
  void fillPath(microtex::i32) override {}

  void drawLine(float x1, float y1, float x2, float y2) override {
    maths.strokes.push_back({at_x(x1), at_y(y1), at_x(x2), at_y(y2), stroke_.lineWidth * sy_ / kTypesetSize});
  }
  void drawRect(float x, float y, float w, float h) override {
    drawLine(x, y, x + w, y), drawLine(x, y + h, x + w, y + h);
    drawLine(x, y, x, y + h), drawLine(x + w, y, x + w, y + h);
  }
  void fillRect(float x, float y, float w, float h) override {
    if (colour_ != kInk) return;  // the ground of a coloured box, which would hide what stands in it
    maths.bars.push_back({at_x(x), at_y(y), w * sx_ / kTypesetSize, h * sy_ / kTypesetSize});
  }
  void drawRoundRect(float x, float y, float w, float h, float, float) override { drawRect(x, y, w, h); }
  void fillRoundRect(float x, float y, float w, float h, float, float) override { fillRect(x, y, w, h); }

  static constexpr microtex::color kInk = 0xFF010203;

 private:
  float at_x(float x) const { return (x_ + x * sx_) / kTypesetSize; }
  float at_y(float y) const { return (y_ + y * sy_) / kTypesetSize; }

  microtex::color colour_ = kInk;
  microtex::Stroke stroke_;
  std::vector<float> dash_;
  microtex::sptr<microtex::Font> font_;
  float size_ = 1, x_ = 0, y_ = 0, sx_ = 1, sy_ = 1;
};

struct TheFont : microtex::Font {
  bool operator==(const microtex::Font&) const override { return true; }
};

/// Text in a formula that the font for maths has no letters for.
class OtherText : public microtex::TextLayout {
 public:
  OtherText(std::string text, float size) : text_(std::move(text)), size_(size) {}
  void getBounds(microtex::Rect& bounds) override {
    const float em = text_height(Type::chat) / text_height(Type::chat, 1) * look().scale;
    bounds = {0, -size_ * 0.75f, text_size(Type::chat, text_).x / em * size_, size_};
  }
  void draw(microtex::Graphics2D& g, float x, float y) override { static_cast<Recorder&>(g).write(text_, size_, x, y); }

 private:
  std::string text_;
  float size_;
};

class Factory : public microtex::PlatformFactory {
 public:
  microtex::sptr<microtex::Font> createFont(const std::string&) override { return font_; }
  microtex::sptr<microtex::TextLayout> createTextLayout(const std::string& text, microtex::FontStyle,
                                                        float size) override {
    return std::make_shared<OtherText>(text, size);
  }

 private:
  microtex::sptr<microtex::Font> font_ = std::make_shared<TheFont>();
};

void begin_microtex() {
  if (microtex::MicroTeX::isInited()) return;
  microtex::PlatformFactory::registerFactory("canopy", std::make_unique<Factory>());
  microtex::PlatformFactory::activate("canopy");
  const auto size = static_cast<size_t>(canopy_file_maths_metrics_end - canopy_file_maths_metrics);
  microtex::MicroTeX::init(microtex::FontSrcData(size, canopy_file_maths_metrics, kMathsFont));
  std::atexit([] { microtex::MicroTeX::release(); });
}

/// The formula in words that MicroTeX knows: of those that it lacks some have no meaning here, and some are others.
std::string in_known_words(std::string_view tex, bool display) {
  struct Word {
    std::string_view from, to;
  };
  static constexpr Word kWords[] = {
      {"\\begin{align*}", "\\begin{align}"},
      {"\\end{align*}", "\\end{align}"},
      {"\\begin{equation*}", "\\begin{equation}"},
      {"\\end{equation*}", "\\end{equation}"},
      {"\\begin{gather*}", "\\begin{gather}"},
      {"\\end{gather*}", "\\end{gather}"},
      {"\\begin{multline*}", "\\begin{multline}"},
      {"\\end{multline*}", "\\end{multline}"},
      {"\\begin{eqnarray*}", "\\begin{eqnarray}"},
      {"\\end{eqnarray*}", "\\end{eqnarray}"},
      {"\\bm", "\\boldsymbol"},
      {"\\argmin", "\\mathop{\\mathrm{arg\\,min}}\\limits"},
      {"\\argmax", "\\mathop{\\mathrm{arg\\,max}}\\limits"},
      {"\\ce", "\\mathrm"},
      {"\\nonumber", ""},
      {"\\operatorname*", "\\operatorname"},
      {"\\|", "\\Vert "},
      {"\\left\\|", "\\left\\Vert "},
      {"\\right\\|", "\\right\\Vert "},
      {"\\notag", ""},
      {"\\mathstrut", ""},
  };
  std::string out;
  while (!tex.empty()) {
    size_t taken = 0;
    if (tex[0] == '\\') {
      for (const auto& [from, to] : kWords) {
        const bool whole = !is_letter(from.back()) || tex.size() <= from.size() || !is_letter(tex[from.size()]);
        if (!tex.starts_with(from) || !whole) continue;
        out += to;
        taken = from.size();
        break;
      }
      for (const std::string_view name : {"\\lim", "\\max", "\\min", "\\sup", "\\inf"})
        if (taken == 0 && display && tex.starts_with(name) && tex.substr(name.size()).starts_with('_')) {
          out += name;  // what it tends to stands below it
          out += "\\limits";
          taken = name.size();
        }
      if (taken == 0 && tex.starts_with("\\tag{")) {
        taken = std::min(tex.find('}'), tex.size() - 1) + 1;
        out += "\\qquad\\text{(";
        out += tex.substr(5, taken - 6);
        out += ")}";
      }
      if (taken == 0 && tex.starts_with("\\label{")) taken = std::min(tex.find('}'), tex.size() - 1) + 1;
      if (taken == 0) {  // also what is escaped
        out += tex.substr(0, 2);
        taken = std::min<size_t>(2, tex.size());
      }
    } else {
      out += tex[0];
      taken = 1;
    }
    tex.remove_prefix(taken);
  }
  return out;
}

std::shared_ptr<const Maths> place(const std::string& tex, bool display) {
  try {
    begin_microtex();
    const auto style = display ? microtex::TexStyle::display : microtex::TexStyle::text;
    const std::unique_ptr<microtex::Render> render(
        microtex::MicroTeX::parse(tex, 0, kTypesetSize, kTypesetSize / 3, Recorder::kInk, false, {true, style}));
    Recorder recorder;
    render->draw(recorder, 0, 0);
    Maths& maths = recorder.maths;
    maths.width = static_cast<float>(render->getWidth()) / kTypesetSize;
    maths.descent = static_cast<float>(render->getDepth()) / kTypesetSize;
    maths.ascent = static_cast<float>(render->getHeight()) / kTypesetSize - maths.descent;
    const float height = maths.ascent + maths.descent;
    const bool sane = maths.width > 0 && maths.width < kMostEms && height >= 0 && height < kMostEms &&
                      std::abs(maths.descent) < kMostEms;
    const bool unknown = recorder.has_red && tex.find("color") == std::string::npos;
    if (recorder.failed || unknown || !sane) return nullptr;
    // MicroTeX counts down from the upper edge.
    for (auto& letter : maths.letters) letter.y -= maths.ascent;
    for (auto& word : maths.words) word.y -= maths.ascent;
    for (auto& bar : maths.bars) bar.y -= maths.ascent;
    for (auto& stroke : maths.strokes) stroke.y1 -= maths.ascent, stroke.y2 -= maths.ascent;
    return std::make_shared<const Maths>(std::move(maths));
  } catch (const std::exception&) {
    return nullptr;
  }
}

/// Dear ImGui's way to read fonts, but asked by the numbers of glyphs.
const ImFontLoader* loader_by_number() {
  static const ImFontLoader loader = [] {
    ImFontLoader own = *ImFontAtlasGetFontLoaderForStbTruetype();
    own.Name = "glyphs by number";
    own.FontSrcGetGlyphIndexFromCodepoint = [](ImFontAtlas* atlas, ImFontConfig* font, ImWchar c) {
      if (c < kFirstGlyph)
        return ImFontAtlasGetFontLoaderForStbTruetype()->FontSrcGetGlyphIndexFromCodepoint(atlas, font, c);
      return c - kFirstGlyph < kGlyphs ? static_cast<int>(c - kFirstGlyph) : 0;
    };
    return own;
  }();
  return &loader;
}

/// The font for maths in the atlas of the current context. It is added when the first formula is drawn.
ImFont* maths_font() {
  ImFontAtlas* atlas = ImGui::GetIO().Fonts;
  for (ImFont* font : atlas->Fonts)
    if (!font->Sources.empty() && std::strcmp(font->Sources[0]->Name, kMathsFont) == 0) return font;
  ImFontConfig config;
  config.FontDataOwnedByAtlas = false;  // the bytes belong to the program
  config.FontLoader = loader_by_number();
  std::snprintf(config.Name, sizeof config.Name, "%s", kMathsFont);
  return atlas->AddFontFromMemoryTTF(const_cast<unsigned char*>(canopy_file_maths_font),
                                     static_cast<int>(canopy_file_maths_font_end - canopy_file_maths_font), 0.0f,
                                     &config);
}

}  // namespace

std::shared_ptr<const Maths> typeset(std::string_view tex, bool display) {
  static std::unordered_map<std::string, std::shared_ptr<const Maths>> known;
  std::string key = display ? "d" : "t";
  key += tex;
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  if (known.size() >= kFormulasKept) known.clear();
  std::string words = in_known_words(tex, display);
  std::shared_ptr<const Maths> maths;
  if (is_whole_formula(words))
    maths = place(words, display);
  else if (words = "\\begin{aligned}" + words + "\\end{aligned}"; display && is_whole_formula(words))
    maths = place(words, display);  // lines one below the other, without the environment that they need
  return known.emplace(std::move(key), std::move(maths)).first->second;
}

void draw_maths(ImDrawList* list, ImVec2 pos, const Maths& maths, float em, Colour colour) {
  const ImU32 ink = ImGui::GetColorU32(colour);
  ImFont* font = maths_font();
  for (const Maths::Letter& letter : maths.letters) {
    const float size = letter.size * em;
    if (size < 1) continue;
    ImFontBaked* baked = font->GetFontBaked(size);
    const float top = pos.y + letter.y * em - baked->Ascent * (size / baked->Size);
    font->RenderChar(list, size, {std::round(pos.x + letter.x * em), std::round(top)}, ink,
                     static_cast<ImWchar>(kFirstGlyph + letter.glyph));
  }
  for (const Maths::Word& word : maths.words) {
    const float height = text_height(Type::chat, 1) / look().scale * word.size * em;
    ImFontBaked* baked = font_of(Type::chat)->GetFontBaked(height);
    list->AddText(font_of(Type::chat), height,
                  {pos.x + word.x * em, pos.y + word.y * em - baked->Ascent * (height / baked->Size)}, ink,
                  word.text.data(), word.text.data() + word.text.size());
  }
  for (const Maths::Bar& bar : maths.bars) {
    const ImVec2 a = {std::round(pos.x + bar.x * em), std::round(pos.y + bar.y * em)};
    const ImVec2 size = {std::max(1.0f, std::round(bar.width * em)), std::max(1.0f, std::round(bar.height * em))};
    list->AddRectFilled(a, {a.x + size.x, a.y + size.y}, ink);
  }
  for (const Maths::Stroke& line : maths.strokes)
    list->AddLine({pos.x + line.x1 * em, pos.y + line.y1 * em}, {pos.x + line.x2 * em, pos.y + line.y2 * em}, ink,
                  std::max(1.0f, line.width * em));
}

}  // namespace canopy::app
