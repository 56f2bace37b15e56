#include "app/shell/models_page.h"

#include <imgui_stdlib.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "app/state/hub.h"
#include "app/state/words.h"
#include "app/ui/look.h"
#include "app/ui/widgets.h"
#include "engine/base/figures.h"
#include "engine/base/text.h"

namespace canopy::app {
namespace {

constexpr float kModelsColumn = 1080, kModelsInset = 16, kRowPad = 14, kRowGapBelow = 6;
constexpr float kTitlePitch = 19, kDetailPitch = 18, kLeastBesideButtons = 280;

void section(std::string_view words, float width) {
  ImGui::Dummy({width, px(4)});
  const ImVec2 a = ImGui::GetCursorScreenPos();
  draw_text(ImGui::GetWindowDrawList(), a, Type::title, colours().text, elided(Type::title, words, width));
  ImGui::Dummy({width, px(22)});
}

struct ModelRow {
  std::string id, title, detail;
  std::vector<ButtonSpec> buttons;
  bool with_bar = false;
  float share = -1;  // of the bar; negative: not known
  bool on = false;   // it is the one in use
};

/// Buttons from the right where they have room beside the words, else below them from the left. Returns the number of
/// the one that was pressed, or -1. at: the upper corner there.
int draw_row_buttons(std::span<const ButtonSpec> buttons, ImVec2 at, float room) {
  int pressed = -1;
  float x = at.x, y = at.y;
  for (size_t i = 0; i < buttons.size(); ++i) {
    const float width = button_size(buttons[i]).x;
    if (x > at.x && x + width > at.x + room) x = at.x, y += px(34);
    ImGui::SetCursorScreenPos({std::floor(x), std::floor(y)});
    if (button(buttons[i])) pressed = static_cast<int>(i);
    x += width + px(8);
  }
  return pressed;
}

/// As high as its buttons become in a row of that width.
float buttons_height(std::span<const ButtonSpec> buttons, float room) {
  float x = 0, height = px(28);
  for (const ButtonSpec& each : buttons) {
    const float width = button_size(each).x;
    if (x > 0 && x + width > room) x = 0, height += px(34);
    x += width + px(8);
  }
  return height;
}

/// Draws a row as high as its words need. Returns the number of the button that was pressed, or -1.
int draw_model_row(const ModelRow& row, float width) {
  const Theme& t = colours();
  ImGui::PushID(row.id.c_str());
  const ImVec2 a = ImGui::GetCursorScreenPos();
  const float inner = width - px(kRowPad) * 2;
  float buttons = 0;
  for (const ButtonSpec& each : row.buttons) buttons += button_size(each).x + px(8);
  const bool beside = !row.buttons.empty() && buttons + px(kLeastBesideButtons) <= inner;
  const float room = beside ? inner - buttons - px(8) : inner;
  TextBlock title, detail;
  title.layout(row.title, Type::base_medium, room);
  detail.layout(row.detail, Type::secondary, room);
  const float title_height = title.height(px(kTitlePitch));
  const float words = title_height + (row.detail.empty() ? 0 : detail.height(px(kDetailPitch)));
  const bool below = !beside && !row.buttons.empty();
  const float bar = row.with_bar ? px(14) : 0, under = below ? px(8) + buttons_height(row.buttons, inner) : 0;
  const float height = std::max(px(46), px(10) + words + bar + under + px(10));
  const ImVec2 b = {a.x + width, a.y + height};
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(a, b, row.on ? t.accent_bg : t.panel, px(6));
  list->AddRect(a, b, t.line, px(6), px(1));
  const float x = a.x + px(kRowPad);
  float y = a.y + px(10);
  title.draw(list, {x, y}, row.title, Type::base_medium, t.text, px(kTitlePitch));
  if (!row.detail.empty())
    detail.draw(list, {x, y + title_height}, row.detail, Type::secondary, t.text2, px(kDetailPitch));
  y += words;
  if (row.with_bar) draw_bar(list, {x, y + px(5)}, {room, px(5)}, row.share, t.accent, t.raised);
  y += bar;
  int pressed = -1;
  if (beside)
    pressed = draw_row_buttons(row.buttons, {b.x - px(kRowPad) - buttons + px(8), a.y + px(9)}, buttons);
  else if (below)
    pressed = draw_row_buttons(row.buttons, {x, y + px(8)}, inner);
  ImGui::SetCursorScreenPos(a);
  ImGui::Dummy({width, height - px(8) + px(kRowGapBelow)});
  ImGui::PopID();
  return pressed;
}

/// What is known, as sentences on one line after another.
std::string facts_joined(std::initializer_list<std::string> parts) {
  std::string all;
  for (const std::string& each : parts)
    if (!each.empty()) all += (all.empty() ? "" : "; ") + each;
  return all;
}

std::string licence_words(const std::string& licence) {
  return licence.empty() ? "" : "licence " + printable(licence);
}

ButtonSpec row_button(const char* label, const char* words, ButtonKind kind = ButtonKind::line,
                      const char* about = nullptr) {
  ButtonSpec spec{label, Icon::none, kind};
  spec.words = words;
  spec.tooltip = about;
  return spec;
}

void trouble_card(const char* id, const char* title, const std::string& problem, float width) {
  bar_card(id, width, colours().rejected, title, problem);
}

/// Whether a download is of something that only guesses: a drafter of a known pair, or a head.
bool only_guesses(const HubState& hub, const std::string& name) {
  const auto parsed = parse_hub_name(name);
  if (!parsed) return false;
  const std::string file = parsed->choice.substr(parsed->choice.rfind('/') + 1);
  if (file.starts_with("mtp-") || file.starts_with("MTP-")) return true;
  return std::ranges::any_of(hub.pairs,
                             [&](const PairOffer& each) { return each.pair.drafter.repo == parsed->repo; }) ||
         std::ranges::any_of(hub.downloads, [&](const HubDownload& each) { return each.drafter == name; });
}

void draw_download(const ViewModel& view, CommandSink& sink, const HubDownload& download, float width) {
  using Phase = HubDownload::Phase;
  ModelRow row;
  row.id = "download " + download.name;
  row.title = printable(download.name);
  row.detail = download_words(download);
  if (!download.drafter.empty()) row.detail += "\nWith its drafter " + printable(download.drafter);
  row.with_bar = download.is_under_way() || (download.phase == Phase::stopped && download.progress.total > 0);
  row.share = download_share(download);
  if (download.is_under_way()) {
    row.buttons = {
        row_button("Stop download", "Stop", ButtonKind::line, "What came stays, and it can go on from there")};
    if (draw_model_row(row, width) == 0) sink.post(HubCommand(StopFetching{download.id}));
    return;
  }
  const bool guesses = only_guesses(view.hub, download.name), there = download.phase == Phase::there;
  const HubDownload* wanted = download.drafter.empty() ? nullptr : fetched(view.hub, download.drafter);
  const std::string drafter =
      wanted != nullptr ? wanted->path : drafter_there(view.hub, view.models.found, download.name);
  if (there && guesses) {
    row.buttons.push_back(row_button("Use as drafter", "Use as drafter", ButtonKind::line,
                                     "Loads the model that is open again, with it"));
    row.buttons.back().enabled = view.model.has_value();
  } else if (there) {
    const char* about = !drafter.empty()            ? "With its drafter"
                        : !download.drafter.empty() ? "Its drafter is not there yet: guesses come from the text"
                                                    : "With a drafter where one is found beside it";
    row.buttons.push_back(row_button("Open fetched", "Open", ButtonKind::primary, about));
  } else {
    row.buttons.push_back(row_button("Go on", "Go on", ButtonKind::primary, "From where it ended"));
  }
  row.buttons.push_back(row_button("Off the list", "Off the list", ButtonKind::line, "Nothing is deleted"));
  const int pressed = draw_model_row(row, width);
  if (pressed == 1) sink.post(HubCommand(ForgetDownload{download.id}));
  if (pressed != 0) return;
  if (!there)
    sink.post(HubCommand(GoOnFetching{download.id}));
  else if (guesses)
    sink.post(ModelsCommand(ChooseDrafter{download.path}));
  else
    sink.post(HubCommand(OpenWithDrafter{download.path, drafter}));
}

void draw_downloads(const ViewModel& view, CommandSink& sink, float width) {
  if (view.hub.downloads.empty()) return;
  section("Downloads", width);
  for (const HubDownload& each : view.hub.downloads) draw_download(view, sink, each, width);
}

void draw_found_repos(const HubState& hub, CommandSink& sink, float width) {
  section("Found for \u201c" + printable(hub.words, 60) + "\u201d", width);
  if (hub.searching) return paragraph("Asking the hub", colours().text2, width, kDetailPitch);
  if (!hub.search_problem.empty())
    return trouble_card("Search problem", "The search failed", hub.search_problem, width);
  if (hub.found.empty())
    return paragraph("The hub has no repository with these words in its name.", colours().text2, width, kDetailPitch);
  for (const HubFound& each : hub.found) {
    ModelRow row;
    row.id = "found " + each.repo;
    row.title = printable(each.repo);
    row.detail = facts_joined({each.gguf ? "GGUF files" : "", licence_words(each.licence),
                               grouped(each.downloads) + " downloads in the last month",
                               each.gated ? "gated: its terms must be accepted at the hub, and HF_TOKEN be set" : ""});
    row.buttons = {row_button("Look inside", "Look inside", ButtonKind::line, "What it has, and what of it fits here")};
    if (draw_model_row(row, width) == 0) sink.post(HubCommand(LookIntoRepo{each.repo}));
  }
}

/// Why guesses may come from a known drafter, and which.
std::string known_drafters(const std::vector<KnownPair>& pairs) {
  std::string words;
  for (const KnownPair& pair : pairs) {
    if (pair.drafter.repo.empty()) continue;
    words += (words.empty() ? "" : "\n") + std::string("A drafter is known for it: ") + printable(pair.drafter.repo) +
             (pair.note.empty() ? "" : ", " + printable(pair.note)) +
             (pair.tried.empty() ? ", not tried here" : ", tried: " + printable(pair.tried));
  }
  return words;
}

void draw_offer(const HubState& hub, CommandSink& sink, const HubOffer& offer, const HubHere& here, float width) {
  const uint64_t bytes = offer.variant.bytes();
  ModelRow row;
  row.id = "offer " + offer.name;
  row.title = printable(offer.variant.label) + ", " + byte_figures(bytes);
  const std::string there = offer.there == 0      ? ""
                            : offer.there < bytes ? byte_figures(offer.there) + " of it are there"
                                                  : "all of it is there";
  const std::string missing =
      offer.variant.missing.empty() ? "" : "not whole: " + printable(offer.variant.missing) + " is not at the hub";
  row.detail = facts_joined({memory_words(offer.weight, here), speed_words(offer.weight), there, missing});
  const std::string drafter = hub.contents->pairs.empty() ? std::string() : hub.contents->pairs.front().drafter.repo;
  row.buttons = {row_button("Fetch", offer.there > 0 && offer.there < bytes ? "Go on" : "Fetch")};
  if (!drafter.empty())
    row.buttons.push_back(row_button("Fetch with drafter", "With drafter", ButtonKind::primary, "Fetches both"));
  for (ButtonSpec& each : row.buttons) each.enabled = offer.variant.missing.empty();
  const int pressed = draw_model_row(row, width);
  if (pressed >= 0) sink.post(HubCommand(FetchModel{offer.name, pressed == 1 ? drafter : ""}));
}

void draw_repo(const HubState& hub, CommandSink& sink, const HubHere& here, float width) {
  section(printable(hub.repo), width);
  if (button(row_button("Back to the search", "Back", ButtonKind::line, "To what was found")))
    sink.post(HubCommand(LookIntoRepo{}));
  if (hub.reading && !hub.contents)
    return paragraph("Asking the hub what it has", colours().text2, width, kDetailPitch);
  if (!hub.repo_problem.empty())
    return trouble_card("Repository problem", "It cannot be looked into", hub.repo_problem, width);
  if (!hub.contents) return;
  const HubContents& contents = *hub.contents;
  paragraph(facts_joined({licence_words(contents.licence),
                          contents.weighing            ? "finding out what fits here"
                          : contents.unweighed.empty() ? ""
                                                       : "what fits here cannot be told: " + contents.unweighed}),
            colours().text2, width, kDetailPitch);
  paragraph(known_drafters(contents.pairs), colours().text2, width, kDetailPitch);
  if (contents.offers.empty() && contents.heads.empty())
    paragraph("It has no model that can be read: neither a GGUF file nor a folder with config.json and safetensors.",
              colours().text2, width, kDetailPitch);
  for (const HubOffer& each : contents.offers) draw_offer(hub, sink, each, here, width);
  for (const HubFile& head : contents.heads) {
    ModelRow row;
    row.id = "head " + head.path;
    row.title = printable(head.path) + ", " + byte_figures(head.bytes);
    row.detail = "A head for guesses, beside the model";
    row.buttons = {row_button("Fetch", "Fetch")};
    if (draw_model_row(row, width) == 0) sink.post(HubCommand(FetchModel{hub.repo + ":" + head.path, ""}));
  }
}

/// "98 MB, its drafter 15 MB"; empty where nothing is known.
std::string size_words(const KnownPair& pair) {
  if (pair.target.bytes == 0) return "";
  return byte_figures(pair.target.bytes) +
         (pair.drafter.bytes > 0 ? ", its drafter " + byte_figures(pair.drafter.bytes) : "");
}

std::string pair_details(const PairOffer& offer, const HubHere& here) {
  const KnownPair& pair = offer.pair;
  const std::string memory = memory_words(offer.weight, here);
  const std::string licences = !pair.drafter.licence.empty() && pair.drafter.licence != pair.target.licence
                                   ? pair.target.licence + " and " + pair.drafter.licence
                                   : pair.target.licence;
  return facts_joined(
      {size_words(pair),
       memory.empty() || offer.quantization.empty() ? memory : "at " + offer.quantization + " " + memory,
       speed_words(offer.weight), licence_words(licences), printable(pair.note),
       pair.tried.empty() ? "not tried here" : "tried: " + printable(pair.tried)});
}

void draw_pair(const ViewModel& view, CommandSink& sink, const PairOffer& offer, const HubHere& here, float width) {
  const KnownPair& pair = offer.pair;
  const bool comes_along = pair.target.repo.empty() && pair.drafter.repo.empty();
  ModelRow row;
  row.id = "pair " + pair.target.name + " " + pair.drafter.name;
  row.title = printable(pair.target.name) + " with " + printable(pair.drafter.name);
  row.detail = pair_details(offer, here);
  const HubDownload* there = offer.target.empty() ? nullptr : fetched(view.hub, offer.target);
  UiCommand first = HubCommand(SearchHub{pair.target.name + " GGUF"});
  if (there != nullptr) {
    const HubDownload* drafter = fetched(view.hub, pair.drafter.repo);
    row.buttons.push_back(row_button("Open pair", "Open", ButtonKind::primary));
    first = HubCommand(OpenWithDrafter{there->path, drafter != nullptr ? drafter->path : ""});
  } else if (comes_along && !view.default_model.empty()) {
    row.buttons.push_back(row_button("Open pair", "Open", ButtonKind::line));
    first = OpenModel{view.default_model};
  } else if (comes_along) {
    row.buttons.push_back(row_button("Fetch pair", "Fetch", ButtonKind::line, "Its drafter is here"));
    first = HubCommand(FetchModel{kSmallModel, ""});
  } else if (!offer.target.empty() && !pair.drafter.repo.empty()) {
    row.buttons.push_back(row_button("Fetch pair", "Fetch both", ButtonKind::line,
                                     pair.target.gguf.empty() ? "As it is published, in BF16" : offer.target.c_str()));
    first = HubCommand(FetchModel{offer.target, pair.drafter.repo});
  }
  if (!comes_along)
    row.buttons.push_back(
        row_button("Find files", "Find files", ButtonKind::line, "Searches the hub for GGUF files of the big model"));
  const int pressed = draw_model_row(row, width);
  if (pressed < 0) return;
  const bool finds = !comes_along && pressed + 1 == static_cast<int>(row.buttons.size());
  sink.post(finds ? UiCommand(HubCommand(SearchHub{pair.target.name + " GGUF"})) : std::move(first));
}

void draw_pairs(const ViewModel& view, CommandSink& sink, const HubHere& here, float width) {
  section("Pairs that are known to fit", width);
  if (!view.hub.pairs_problem.empty())
    return trouble_card("Pairs problem", "The list of pairs cannot be read", view.hub.pairs_problem, width);
  paragraph(
      "A big model with a drafter, a small one that guesses what it will write; the text stays that of the big model. "
      "\u201cNot tried\u201d: their authors say that they fit.",
      colours().text2, width, kDetailPitch);
  for (const PairOffer& each : view.hub.pairs) draw_pair(view, sink, each, here, width);
}

void draw_models_here(const ViewModel& view, CommandSink& sink, float width) {
  section("On this computer", width);
  if (!view.models.look_problem.empty()) paragraph(view.models.look_problem, colours().text2, width, kDetailPitch);
  if (view.models.found.empty())
    return paragraph(view.models.looked ? "No model was found here." : "Looking for models on this computer",
                     colours().text2, width, kDetailPitch);
  for (const FoundModel& each : view.models.found) {
    ModelRow row;
    row.id = "here " + each.source + " " + each.name + " " + each.path;
    row.title = printable(each.name);
    std::string notes;
    for (const std::string& note : each.notes) notes = facts_joined({notes, printable(note)});
    row.detail =
        each.problem.empty()
            ? facts_joined({byte_figures(each.bytes),
                            each.source.empty() ? "a file of your own" : "kept by " + each.source,
                            each.drafter ? "only for guesses" : "", notes})
            : facts_joined({each.source.empty() ? "" : "kept by " + each.source, printable(each.problem, 1024)});
    row.on = !each.path.empty() && each.path == view.model_path && view.model_state != ModelState::none;
    if (each.problem.empty() && !each.drafter) row.buttons = {row_button("Open here", "Open")};
    if (draw_model_row(row, width) == 0)
      sink.post(HubCommand(OpenWithDrafter{each.path, drafter_there(view.hub, view.models.found, each.name)}));
  }
}

}  // namespace

void ModelsPage::draw_search(CommandSink& sink, float width) {
  ButtonSpec search{"Search the hub", Icon::search, ButtonKind::primary};
  search.words = "Search";
  search.tooltip = "Asks the hub for repositories with these words in their names";
  search.enabled = words_.find_first_not_of(' ') != std::string::npos;
  if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
  push_type(Type::base);
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_Border, colours().ctl);
  ImGui::SetNextItemWidth(std::max(px(60), width - button_size(search).x - px(8)));
  bool asked = ImGui::InputTextWithHint("##hub words", "Name of a model, such as qwen3 4b", &words_,
                                        ImGuiInputTextFlags_EnterReturnsTrue);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  ImGui::PopFont();
  ImGui::SameLine(0, px(8));
  asked |= button(search);
  if (asked && search.enabled) sink.post(HubCommand(SearchHub{words_}));
}

void ModelsPage::draw_head(const ViewModel& view, CommandSink& sink, float width) {
  const Theme& t = colours();
  const ImVec2 a = ImGui::GetCursorScreenPos();
  draw_text_middle(ImGui::GetWindowDrawList(), a.x, a.y + px(16), Type::card_title, t.text, "Models");
  ButtonSpec close{"Close the page", Icon::close};
  close.show_label = false;
  close.height = 32;
  close.tooltip = "Back to the chat; downloads go on  Esc";
  ImGui::SetCursorScreenPos({a.x + width - button_size(close).x, a.y});
  if (button(close)) sink.post(ShellCommand(ShowPage{WindowPage::rounds}));
  ImGui::SetCursorScreenPos({a.x, a.y + px(40)});
  const HubHere here = hub_here(view);
  const std::string device = here.device.empty() ? "" : "For " + here.device;
  const std::string memory = here.available == 0 ? "" : "about " + byte_figures(here.available) + " for a model";
  const std::string room =
      view.hub.free_bytes ? byte_figures(*view.hub.free_bytes) + " free for downloads in " + printable(view.hub.folder)
                          : "";
  paragraph(facts_joined({device, memory, room}), t.text2, width, kDetailPitch);
}

void ModelsPage::draw(const ViewModel& view, CommandSink& sink) {
  ImGui::PushStyleColor(ImGuiCol_ChildBg, colours().back);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildBorderSize, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, 0);
  ImGui::SetCursorPos({0, 0});
  ImGui::BeginChild("Models body", ImGui::GetWindowSize(), ImGuiChildFlags_NavFlattened);
  const float room = ImGui::GetContentRegionAvail().x;
  const float width = std::floor(std::min(px(kModelsColumn), room - px(kModelsInset) * 2));
  ImGui::SetCursorPos({std::floor((room - width) * 0.5f), px(kModelsInset)});
  ImGui::BeginGroup();
  draw_error_cards(view, sink, width);
  draw_head(view, sink, width);
  draw_search(sink, width);
  draw_downloads(view, sink, width);
  const HubHere here = hub_here(view);
  if (!view.hub.repo.empty())
    draw_repo(view.hub, sink, here, width);
  else if (view.hub.searching || view.hub.searched)
    draw_found_repos(view.hub, sink, width);
  draw_pairs(view, sink, here, width);
  draw_models_here(view, sink, width);
  ImGui::Dummy({width, px(kModelsInset)});
  ImGui::EndGroup();
  ImGui::EndChild();
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor();
}

void draw_first_models(const ViewModel& view, CommandSink& sink, float width) {
  ImGui::BeginGroup();
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {px(8), px(8)});
  section("No model is here yet", width);
  if (view.hub.unreachable) {
    ModelRow row;
    row.id = "No network";
    row.title = "The hub does not answer";
    row.detail = "A model can be fetched once there is a network, or opened from a file. The demo needs neither.";
    row.buttons = {row_button("Demo without network", "Watch demo", ButtonKind::primary)};
    if (draw_model_row(row, width) == 0) sink.post(RoundsCommand(WatchDemo{}));
  }
  const HubHere here = hub_here(view);
  ModelRow small;
  small.id = "small model";
  small.title = "SmolLM2 135M Instruct";
  small.detail = "About " + byte_figures(kSmallModelBytes) +
                 " to fetch; licence apache-2.0; runs on any device, and its drafter comes with Canopy";
  small.buttons = {row_button("Fetch small model", "Fetch")};
  if (draw_model_row(small, width) == 0) sink.post(HubCommand(FetchModel{kSmallModel, ""}));
  if (const PairOffer* pair = suiting_pair(view.hub.pairs, here)) {
    ModelRow row;
    row.id = "suiting pair";
    row.title = printable(pair->pair.target.name) + " with " + printable(pair->pair.drafter.name);
    row.detail = "The largest known pair that suits this device; " + pair_details(*pair, here);
    row.buttons = {row_button("Fetch suiting pair", "Fetch both")};
    if (draw_model_row(row, width) == 0) sink.post(HubCommand(FetchModel{pair->target, pair->pair.drafter.repo}));
  }
  ModelRow more;
  more.id = "more models";
  more.title = "Another model";
  more.detail =
      "Search a hub by name, see what fits this device and what other programs keep here, or open a file of your own";
  more.buttons = {row_button("Get models", "Get models", ButtonKind::line, "Ctrl+Shift+O"),
                  row_button("Own file", "Open a file", ButtonKind::line, "Ctrl+O")};
  const int pressed = draw_model_row(more, width);
  if (pressed == 0) sink.post(ShellCommand(ShowPage{WindowPage::models}));
  if (pressed == 1) sink.post(BrowseModel{});
  draw_downloads(view, sink, width);
  ImGui::PopStyleVar();
  ImGui::EndGroup();
}

}  // namespace canopy::app
