#include "app/platform/system_fonts.h"

#ifdef _WIN32
#include <dwrite_2.h>

#include "app/platform/com.h"
#else
#include <fontconfig/fontconfig.h>
#endif
#include <ft2build.h>
#include <hb-ot.h>
#include <hb.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <future>
#include <mutex>
#include <unordered_map>
#include <utility>

#include FT_FREETYPE_H
#include FT_OUTLINE_H

#include "app/platform/text_order.h"

namespace canopy::app {
namespace {

constexpr size_t kShapesKept = 8192;
constexpr uint32_t kLargestGlyph = 1024;  // pixels to a side

/// FreeType and HarfBuzz keep what they work on in the font, and fonts are shared.
std::mutex& font_mutex() {
  static std::mutex mutex;
  return mutex;
}

FT_Library font_library() {
  static FT_Library library = [] {
    FT_Library made = nullptr;
    return FT_Init_FreeType(&made) == 0 ? made : nullptr;
  }();
  return library;
}

}  // namespace

struct SystemFace::Open {
  FT_Face face = nullptr;
  hb_font_t* font = nullptr;
  float per_unit = 0;  // em of one unit of HarfBuzz's font
  struct Hash {
    size_t operator()(const std::pair<std::string, bool>& key) const {
      return std::hash<std::string>()(key.first) * 2 + (key.second ? 1 : 0);
    }
  };
  std::unordered_map<std::pair<std::string, bool>, std::shared_ptr<const std::vector<ShapedGlyph>>, Hash> shapes;

  explicit Open(const Place& place) {
    if (font_library() == nullptr ||
        FT_New_Face(font_library(), place.path.c_str(), static_cast<FT_Long>(place.index), &face) != 0)
      face = nullptr;
    hb_blob_t* file = hb_blob_create_from_file(place.path.c_str());
    hb_face_t* shaped = hb_face_create(file, place.index & 0xFFFF);
    hb_blob_destroy(file);
    font = hb_font_create(shaped);
    const unsigned units = hb_face_get_upem(shaped);
    hb_face_destroy(shaped);
    per_unit = units > 0 ? 1 / static_cast<float>(units) : 0;
    hb_font_set_scale(font, static_cast<int>(units), static_cast<int>(units));
    if (place.index >> 16 > 0) hb_font_set_var_named_instance(font, (place.index >> 16) - 1);
  }
  ~Open() {
    hb_font_destroy(font);
    if (face) FT_Done_Face(face);
  }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;

  /// Sets the size. Returns how much smaller than the font's own pixels letters of `em` pixels are: 1 for outlines.
  float set_size(float em) {
    if (FT_IS_SCALABLE(face)) {
      FT_Set_Char_Size(face, 0, static_cast<FT_F26Dot6>(std::lround(em * 64)), 72, 72);
      return 1;
    }
    if (face->num_fixed_sizes <= 0) return 0;
    // The smallest that is large enough, else the largest.
    int best = 0;
    const auto size_of = [&](int i) { return static_cast<float>(face->available_sizes[i].y_ppem) / 64; };
    for (int i = 1; i < face->num_fixed_sizes; ++i) {
      const bool enough = size_of(i) >= em, had = size_of(best) >= em;
      if (enough == had ? (enough ? size_of(i) < size_of(best) : size_of(i) > size_of(best)) : enough) best = i;
    }
    if (FT_Select_Size(face, best) != 0 || size_of(best) <= 0) return 0;
    return em / size_of(best);
  }
};

SystemFace::SystemFace(Place place, std::vector<std::pair<char32_t, char32_t>> characters)
    : place_(std::move(place)), characters_(std::move(characters)) {}

SystemFace::~SystemFace() = default;

SystemFace::Open& SystemFace::open() const {
  if (!open_) open_ = std::make_unique<Open>(place_);
  return *open_;
}

bool SystemFace::has(char32_t c) const {
  const auto after = std::upper_bound(characters_.begin(), characters_.end(), c,
                                      [](char32_t value, const auto& range) { return value < range.first; });
  return after != characters_.begin() && c <= std::prev(after)->second;
}

uint32_t SystemFace::glyph_of(char32_t c) const {
  const std::lock_guard lock(font_mutex());
  hb_codepoint_t glyph = 0;
  return hb_font_get_nominal_glyph(open().font, static_cast<hb_codepoint_t>(c), &glyph) ? glyph : 0;
}

float SystemFace::advance(uint32_t glyph) const {
  const std::lock_guard lock(font_mutex());
  Open& font = open();
  return std::clamp(static_cast<float>(hb_font_get_glyph_h_advance(font.font, glyph)) * font.per_unit, 0.0f, 8.0f);
}

std::shared_ptr<const std::vector<ShapedGlyph>> SystemFace::shape(std::string_view letters, bool rtl) const {
  const std::lock_guard lock(font_mutex());
  Open& font = open();
  if (font.shapes.size() > kShapesKept) font.shapes.clear();
  auto& kept = font.shapes[{std::string(letters), rtl}];
  if (kept) return kept;
  hb_buffer_t* buffer = hb_buffer_create();
  hb_buffer_add_utf8(buffer, letters.data(), static_cast<int>(letters.size()), 0, static_cast<int>(letters.size()));
  hb_buffer_guess_segment_properties(buffer);
  hb_buffer_set_direction(buffer, rtl ? HB_DIRECTION_RTL : HB_DIRECTION_LTR);
  hb_shape(font.font, buffer, nullptr, 0);
  unsigned count = 0;
  const hb_glyph_info_t* infos = hb_buffer_get_glyph_infos(buffer, &count);
  const hb_glyph_position_t* places = hb_buffer_get_glyph_positions(buffer, &count);
  auto shaped = std::make_shared<std::vector<ShapedGlyph>>();
  for (unsigned i = 0; i < count; ++i) {
    const auto em = [&](hb_position_t units) {
      return std::clamp(static_cast<float>(units) * font.per_unit, -8.0f, 8.0f);
    };
    shaped->push_back({infos[i].codepoint, infos[i].cluster, std::max(0.0f, em(places[i].x_advance)),
                       em(places[i].x_offset), em(places[i].y_offset)});
  }
  hb_buffer_destroy(buffer);
  return kept = std::move(shaped);
}

GlyphPixels SystemFace::pixels(uint32_t glyph, float em) const {
  const std::lock_guard lock(font_mutex());
  Open& font = open();
  GlyphPixels out;
  if (!font.face || !(em >= 1) || em > kLargestGlyph) return out;
  const float share = font.set_size(em);
  if (share <= 0) return out;
  // Without hinting, as the advances are those of the outlines at any size.
  if (FT_Load_Glyph(font.face, glyph, FT_LOAD_NO_HINTING | (place_.coloured ? FT_LOAD_COLOR : FT_LOAD_NO_BITMAP)) != 0)
    return out;
  FT_GlyphSlot slot = font.face->glyph;
  if (slot->format != FT_GLYPH_FORMAT_BITMAP && FT_Render_Glyph(slot, FT_RENDER_MODE_NORMAL) != 0) return out;
  const FT_Bitmap& bitmap = slot->bitmap;
  if (bitmap.width == 0 || bitmap.rows == 0 || bitmap.width > kLargestGlyph || bitmap.rows > kLargestGlyph) return out;
  const bool bgra = bitmap.pixel_mode == FT_PIXEL_MODE_BGRA;
  if (!bgra && bitmap.pixel_mode != FT_PIXEL_MODE_GRAY) return out;
  const auto row = [&](uint32_t y) { return bitmap.buffer + static_cast<ptrdiff_t>(y) * bitmap.pitch; };
  const auto smaller = [&](unsigned length) {
    return share >= 1 ? length : std::max(1u, static_cast<unsigned>(std::lround(static_cast<float>(length) * share)));
  };
  out.width = smaller(bitmap.width);
  out.height = smaller(bitmap.rows);
  out.left = static_cast<float>(slot->bitmap_left) * std::min(share, 1.0f);
  out.top = static_cast<float>(slot->bitmap_top) * std::min(share, 1.0f);
  out.coloured = bgra;
  out.pixels.resize(size_t{out.width} * out.height * 4);
  // Each pixel is the mean of those that it stands for; FreeType's colours are multiplied by their alpha.
  for (uint32_t y = 0; y < out.height; ++y)
    for (uint32_t x = 0; x < out.width; ++x) {
      const uint32_t x0 = x * bitmap.width / out.width, x1 = std::max(x0 + 1, (x + 1) * bitmap.width / out.width);
      const uint32_t y0 = y * bitmap.rows / out.height, y1 = std::max(y0 + 1, (y + 1) * bitmap.rows / out.height);
      uint32_t sum[4] = {0, 0, 0, 0};
      for (uint32_t sy = y0; sy < y1; ++sy)
        for (uint32_t sx = x0; sx < x1; ++sx)
          if (bgra)
            for (uint32_t c = 0; c < 4; ++c) sum[c] += row(sy)[sx * 4 + c];
          else
            sum[3] += row(sy)[sx];
      const uint32_t count = (x1 - x0) * (y1 - y0);
      uint8_t* pixel = out.pixels.data() + (size_t{y} * out.width + x) * 4;
      const auto channel = [&](uint32_t blended) {
        return static_cast<uint8_t>(sum[3] == 0 ? 0 : std::min(255u, (blended * 255 + sum[3] / 2) / sum[3]));
      };
      for (uint32_t c = 0; c < 3; ++c) pixel[c] = bgra ? channel(sum[2 - c]) : uint8_t{255};
      pixel[3] = static_cast<uint8_t>((sum[3] + count / 2) / count);
    }
  return out;
}

namespace {

struct OutlineSink {
  std::vector<OutlineStep>* steps;
  float per_unit;
  float em(FT_Pos units) const { return static_cast<float>(units) * per_unit; }
  void add(OutlineStep::Kind kind, const FT_Vector& to, FT_Vector c = {}, FT_Vector d = {}) {
    steps->push_back({kind, em(to.x), em(to.y), em(c.x), em(c.y), em(d.x), em(d.y)});
  }
};

OutlineSink& sink_of(void* user) {
  return *static_cast<OutlineSink*>(user);
}

int outline_move(const FT_Vector* to, void* user) {
  sink_of(user).add(OutlineStep::Kind::move, *to);
  return 0;
}
int outline_line(const FT_Vector* to, void* user) {
  sink_of(user).add(OutlineStep::Kind::line, *to);
  return 0;
}
int outline_quadratic(const FT_Vector* c, const FT_Vector* to, void* user) {
  sink_of(user).add(OutlineStep::Kind::quadratic, *to, *c);
  return 0;
}
int outline_cubic(const FT_Vector* c, const FT_Vector* d, const FT_Vector* to, void* user) {
  sink_of(user).add(OutlineStep::Kind::cubic, *to, *c, *d);
  return 0;
}

}  // namespace

std::vector<OutlineStep> SystemFace::outline(uint32_t glyph) const {
  const std::lock_guard lock(font_mutex());
  Open& font = open();
  std::vector<OutlineStep> steps;
  if (!font.face || !FT_IS_SCALABLE(font.face) || font.face->units_per_EM == 0) return steps;
  if (FT_Load_Glyph(font.face, glyph, FT_LOAD_NO_SCALE | FT_LOAD_NO_BITMAP) != 0 ||
      font.face->glyph->format != FT_GLYPH_FORMAT_OUTLINE)
    return steps;
  OutlineSink sink{&steps, 1 / static_cast<float>(font.face->units_per_EM)};
  const FT_Outline_Funcs funcs = {outline_move, outline_line, outline_quadratic, outline_cubic, 0, 0};
  if (FT_Outline_Decompose(&font.face->glyph->outline, &funcs, &sink) != 0) steps.clear();
  return steps;
}

namespace {

using Faces = std::vector<const SystemFace*>;  // in the order of preference

struct KnownFonts {
  std::vector<std::unique_ptr<SystemFace>> faces;
  Faces letters, emoji;
};

#ifdef _WIN32

std::vector<std::pair<char32_t, char32_t>> ranges_of(IDWriteFontFace1& face) {
  UINT32 count = 0;
  face.GetUnicodeRanges(0, nullptr, &count);
  std::vector<DWRITE_UNICODE_RANGE> found(count);
  if (FAILED(face.GetUnicodeRanges(count, found.data(), &count))) return {};
  std::vector<std::pair<char32_t, char32_t>> ranges;
  for (const DWRITE_UNICODE_RANGE& each : found) ranges.push_back({each.first, each.last});
  return ranges;
}

/// The file of a face; empty where it is none of this machine's.
std::wstring file_of(IDWriteFontFace& face) {
  UINT32 count = 1;
  IDWriteFontFile* first = nullptr;
  if (FAILED(face.GetFiles(&count, &first)) || first == nullptr) return {};
  const Owned<IDWriteFontFile> file(first);
  const void* key = nullptr;
  UINT32 key_size = 0, length = 0;
  const auto loader = obtained<IDWriteFontFileLoader>([&](auto made) { return file->GetLoader(made); });
  const auto local = loader ? as<IDWriteLocalFontFileLoader>(*loader) : nullptr;
  if (!local || FAILED(file->GetReferenceKey(&key, &key_size)) ||
      FAILED(local->GetFilePathLengthFromKey(key, key_size, &length)))
    return {};
  std::wstring path(length + 1, 0);
  if (FAILED(local->GetFilePathFromKey(key, key_size, path.data(), length + 1))) return {};
  path.resize(length);
  return path;
}

/// The plain face of a family.
std::unique_ptr<SystemFace> plain_face(IDWriteFontFamily& family) {
  const auto font = obtained<IDWriteFont>([&](auto made) {
    return family.GetFirstMatchingFont(DWRITE_FONT_WEIGHT_NORMAL, DWRITE_FONT_STRETCH_NORMAL, DWRITE_FONT_STYLE_NORMAL,
                                       made);
  });
  if (!font || font->IsSymbolFont()) return nullptr;  // whose letters are pictures
  const auto face = obtained<IDWriteFontFace>([&](auto made) { return font->CreateFontFace(made); });
  const auto with_ranges = face ? as<IDWriteFontFace1>(*face) : nullptr;
  if (!with_ranges) return nullptr;
  const std::wstring file = file_of(*face);
  if (file.empty()) return nullptr;
  const auto with_colours = as<IDWriteFontFace2>(*face);
  SystemFace::Place place{std::filesystem::path(file).string(), face->GetIndex(),
                          with_colours && with_colours->IsColorFont()};
  return std::make_unique<SystemFace>(std::move(place), ranges_of(*with_ranges));
}

/// The families that Windows writes its own scripts with come first, in this order; the others as it lists them.
KnownFonts find_fonts() {
  static constexpr const wchar_t* kOfWindows[] = {L"Segoe UI",        L"Tahoma",
                                                  L"Microsoft YaHei", L"Yu Gothic",
                                                  L"Malgun Gothic",   L"Microsoft JhengHei",
                                                  L"Nirmala UI",      L"Leelawadee UI",
                                                  L"Myanmar Text",    L"Ebrima",
                                                  L"Gadugi",          L"Mongolian Baiti",
                                                  L"Sylfaen",         L"Microsoft Himalaya",
                                                  L"Segoe UI Symbol", L"Segoe UI Historic",
                                                  L"Cambria Math"};
  KnownFonts known;
  const auto factory = obtained<IDWriteFactory>([](IDWriteFactory** made) {
    return ::DWriteCreateFactory(DWRITE_FACTORY_TYPE_ISOLATED, __uuidof(IDWriteFactory),
                                 reinterpret_cast<IUnknown**>(made));
  });
  const auto fonts = !factory ? nullptr : obtained<IDWriteFontCollection>([&](auto made) {
    return factory->GetSystemFontCollection(made, FALSE);
  });
  if (!fonts) return known;
  std::vector<UINT32> order;
  const auto add = [&](const wchar_t* name) {
    UINT32 index = 0;
    BOOL exists = FALSE;
    if (SUCCEEDED(fonts->FindFamilyName(name, &index, &exists)) && exists) order.push_back(index);
  };
  for (const wchar_t* name : kOfWindows) add(name);
  add(L"Segoe UI Emoji");
  for (UINT32 i = 0; i < fonts->GetFontFamilyCount(); ++i)
    if (std::ranges::find(order, i) == order.end()) order.push_back(i);
  for (const UINT32 index : order) {
    const auto family = obtained<IDWriteFontFamily>([&](auto made) { return fonts->GetFontFamily(index, made); });
    std::unique_ptr<SystemFace> face = family ? plain_face(*family) : nullptr;
    if (!face) continue;
    (face->place().coloured ? known.emoji : known.letters).push_back(face.get());
    known.faces.push_back(std::move(face));
  }
  // What has no picture in colour is taken from where letters are, and the other way round.
  const size_t emoji = known.emoji.size();
  known.emoji.insert(known.emoji.end(), known.letters.begin(), known.letters.end());
  known.letters.insert(known.letters.end(), known.emoji.begin(), known.emoji.begin() + static_cast<ptrdiff_t>(emoji));
  return known;
}

#else

std::vector<std::pair<char32_t, char32_t>> ranges_of(const FcCharSet* set) {
  std::vector<std::pair<char32_t, char32_t>> ranges;
  FcChar32 map[FC_CHARSET_MAP_SIZE];
  FcChar32 next = 0;
  for (FcChar32 page = FcCharSetFirstPage(set, map, &next); page != FC_CHARSET_DONE;
       page = FcCharSetNextPage(set, map, &next))
    for (FcChar32 i = 0; i < FC_CHARSET_MAP_SIZE * 32; ++i) {
      if (!(map[i / 32] >> (i % 32) & 1)) continue;
      const char32_t c = page + i;
      if (!ranges.empty() && ranges.back().second + 1 == c)
        ranges.back().second = c;
      else
        ranges.push_back({c, c});
    }
  return ranges;
}

/// Adds the fonts that together have all characters, in fontconfig's order for a family.
void find_family(FcConfig* config, const char* family, KnownFonts& known, Faces& order) {
  FcPattern* pattern = FcPatternCreate();
  FcPatternAddString(pattern, FC_FAMILY, reinterpret_cast<const FcChar8*>(family));
  FcConfigSubstitute(config, pattern, FcMatchPattern);
  FcDefaultSubstitute(pattern);
  FcResult result = FcResultNoMatch;
  FcFontSet* fonts = FcFontSort(config, pattern, FcTrue, nullptr, &result);
  for (int i = 0; fonts && i < fonts->nfont; ++i) {
    FcPattern* font = fonts->fonts[i];
    FcChar8* file = nullptr;
    FcCharSet* characters = nullptr;
    int index = 0;
    FcBool outline = FcFalse, coloured = FcFalse;
    if (FcPatternGetString(font, FC_FILE, 0, &file) != FcResultMatch ||
        FcPatternGetCharSet(font, FC_CHARSET, 0, &characters) != FcResultMatch)
      continue;
    FcPatternGetInteger(font, FC_INDEX, 0, &index);
    FcPatternGetBool(font, FC_OUTLINE, 0, &outline);
    FcPatternGetBool(font, FC_COLOR, 0, &coloured);
    if (!outline && !coloured) continue;  // pixels of one size
    SystemFace::Place place{reinterpret_cast<const char*>(file), static_cast<unsigned>(index), coloured != FcFalse};
    if (place.index >> 16 == 0x8000) place.index &= 0xFFFF;  // a font that varies, as it is
    const auto same = std::find_if(known.faces.begin(), known.faces.end(), [&](const auto& each) {
      return each->place().path == place.path && each->place().index == place.index;
    });
    if (same == known.faces.end()) {
      known.faces.push_back(std::make_unique<SystemFace>(std::move(place), ranges_of(characters)));
      order.push_back(known.faces.back().get());
    } else {
      order.push_back(same->get());
    }
  }
  if (fonts) FcFontSetDestroy(fonts);
  FcPatternDestroy(pattern);
}

KnownFonts find_fonts() {
  KnownFonts known;
  FcConfig* config = FcInitLoadConfigAndFonts();
  if (!config) return known;
  find_family(config, "sans-serif", known, known.letters);
  find_family(config, "emoji", known, known.emoji);
  FcConfigDestroy(config);
  return known;
}

#endif

std::shared_future<KnownFonts>& finding() {
  static std::shared_future<KnownFonts> fonts = std::async(std::launch::async, find_fonts).share();
  return fonts;
}

bool is_emoji(char32_t c) {
  return c >= 0x1F000 && c <= 0x1FAFF;
}

/// Whether a font in colour really has something to draw: not all ways to store colours are known to FreeType.
bool draws(const SystemFace& face, char32_t c) {
  return !face.place().coloured || !face.pixels(face.glyph_of(c), 16).pixels.empty();
}

}  // namespace

bool system_fonts_known() {
  return finding().wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

void wait_for_system_fonts() {
  finding().wait();
}

namespace {

/// The first font of an order with a character, looked for once.
class FirstWith {
 public:
  const SystemFace* find(char32_t c, const Faces& order, bool coloured_only) {
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] = found_.try_emplace(c, nullptr);
    if (!is_new) return at->second;
    for (const SystemFace* face : order)
      if ((face->place().coloured || !coloured_only) && face->has(c) && draws(*face, c)) return at->second = face;
    return nullptr;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<char32_t, const SystemFace*> found_;
};

}  // namespace

const SystemFace* system_face(char32_t c) {
  static FirstWith first;
  const KnownFonts& known = finding().get();
  return first.find(c, is_emoji(c) ? known.emoji : known.letters, false);
}

const SystemFace* emoji_face(char32_t c) {
  static FirstWith first;
  return first.find(c, finding().get().emoji, true);
}

namespace {

struct Script {
  char32_t first, last;
  const char *name, *package;
};

const Script* script_at(char32_t c) {
  static constexpr const char *kCore = "fonts-noto-core", *kCjk = "fonts-noto-cjk", *kEmoji = "fonts-noto-color-emoji";
  static constexpr Script kScripts[] = {
      {0x0370, 0x03FF, "Greek", kCore},
      {0x0400, 0x052F, "Cyrillic", kCore},
      {0x0530, 0x058F, "Armenian", kCore},
      {0x0590, 0x05FF, "Hebrew", kCore},
      {0x0600, 0x08FF, "Arabic", kCore},
      {0x0900, 0x097F, "Devanagari", kCore},
      {0x0980, 0x0DFF, "Indian", kCore},
      {0x0E00, 0x0E7F, "Thai", kCore},
      {0x0E80, 0x0EFF, "Lao", kCore},
      {0x0F00, 0x0FFF, "Tibetan", kCore},
      {0x1000, 0x109F, "Burmese", kCore},
      {0x10A0, 0x10FF, "Georgian", kCore},
      {0x1100, 0x11FF, "Korean", kCjk},
      {0x1200, 0x139F, "Ethiopic", kCore},
      {0x1780, 0x17FF, "Khmer", kCore},
      {0x1800, 0x18AF, "Mongolian", kCore},
      {0x2000, 0x2BFF, "symbols", kCore},
      {0x2E80, 0x303F, "Chinese", kCjk},
      {0x3040, 0x30FF, "Japanese", kCjk},
      {0x3100, 0x312F, "Chinese", kCjk},
      {0x3130, 0x318F, "Korean", kCjk},
      {0x3190, 0x9FFF, "Chinese", kCjk},
      {0xAC00, 0xD7FF, "Korean", kCjk},
      {0xF900, 0xFAFF, "Chinese", kCjk},
      {0xFB1D, 0xFB4F, "Hebrew", kCore},
      {0xFB50, 0xFDFF, "Arabic", kCore},
      {0xFE70, 0xFEFF, "Arabic", kCore},
      {0xFF00, 0xFFEF, "wide letters", kCjk},
      {0x1D400, 0x1D7FF, "mathematical letters", kCore},
      {0x1F000, 0x1FAFF, "emoji", kEmoji},
      {0x20000, 0x3FFFF, "Chinese", kCjk},
  };
  for (const Script& each : kScripts)
    if (c >= each.first && c <= each.last) return &each;
  return nullptr;
}

const char* script_of(char32_t c) {
  const Script* script = script_at(c);
  return script ? script->name : "rare letters";
}

/// The package of Debian that has a font for it; null where none is known.
const char* font_package_of(char32_t c) {
  if (const Script* script = script_at(c)) return script->package;
  return is_private(c) || c == 0xFFFD ? nullptr : "fonts-noto-core";
}

void add_once(std::vector<std::string>& all, const char* each) {
  if (each && std::find(all.begin(), all.end(), each) == all.end()) all.push_back(each);
}

std::string with_between(const std::vector<std::string>& all, const char* between) {
  std::string out;
  for (const std::string& each : all) out += (out.empty() ? "" : between) + each;
  return out;
}

}  // namespace

std::string missing_fonts_note(const std::vector<uint32_t>& characters) {
  if (characters.empty()) return "";
  std::vector<std::string> scripts, packages;
  for (const uint32_t c : characters) {
    add_once(scripts, script_of(c));
    add_once(packages, font_package_of(c));
  }
  const std::string what = "No font here shows " + with_between(scripts, ", ") + "; boxes with codes stand for them.";
  if (packages.empty()) return what;
#ifdef _WIN32
  return what + " Windows has fonts for them among the optional features of its settings; then start Canopy again.";
#else
  return what + " To see them: sudo apt install " + with_between(packages, " ") + ", and start Canopy again.";
#endif
}

}  // namespace canopy::app
