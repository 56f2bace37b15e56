#include "app/bars/share_box.h"

#include <imgui.h>
#include <imgui_stdlib.h>

#include <array>

#include "app/base/figures.h"
#include "app/conversation/export_path.h"
#include "app/look/text_block.h"
#include "app/look/widgets.h"

namespace canopy::app {
namespace {

constexpr const char* kSharePopup = "Share";
constexpr float kShareWidth = 500, kShareLine = 19;

struct KindWords {
  const char* id;
  const char* words;
  const char* about;
};
constexpr std::array<KindWords, kShareKinds> kKinds = {{
    {"Share as PNG", "PNG", "This round as a picture of 2560 \u00d7 1440 pixels, in the colours of the window."},
    {"Share as SVG", "SVG",
     "This round as shapes and letters, sharp at any size. It shows its dark or its light colours, as its reader "
     "prefers."},
    {"Share as page", "Web page",
     "All rounds in one file that opens in any browser: the tree, the text, scrubbing, slow motion and statistics. It "
     "needs no network."},
    {"Share as animation", "Animation",
     "Up to ten rounds from this one on, as an SVG picture that moves, for a README or a web page."},
}};

void share_words(const std::string& words, Colour colour, float width) {
  if (words.empty()) return;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  TextBlock block;
  block.layout(words, Type::secondary, width);
  block.draw(ImGui::GetWindowDrawList(), at, words, Type::secondary, colour, px(kShareLine));
  ImGui::Dummy({width, block.height(px(kShareLine))});
}

std::string what_is_shared(const ViewModel& view) {
  const RoundLog& log = *view.rounds.log;
  return "Round " + grouped(view.rounds.playback.shown + 1) + " of " + grouped(log.rounds()) +
         (view.rounds.trace_path.empty() ? ", written here" : ", of the recording that is shown");
}

}  // namespace

void ShareBox::suggest(const ViewModel& view) {
  const std::string name = share_name(view.share.kind, view.rounds.playback.shown, view.rounds.trace_path);
  const std::string suggestion = (documents_folder() / name).string();
  if (suggestion == suggested_) return;
  if (path_.empty() || path_ == suggested_) path_ = suggestion;  // else it was typed by the user
  suggested_ = suggestion;
}

void ShareBox::draw_kinds(const ViewModel& view, CommandSink& sink, float width) {
  for (size_t i = 0; i < kKinds.size(); ++i) {
    const auto kind = static_cast<ShareKind>(i);
    ButtonSpec spec{kKinds[i].id, Icon::none, ButtonKind::line};
    spec.words = kKinds[i].words;
    spec.on = view.share.kind == kind;
    spec.enabled = !view.share.running;
    if (i > 0) ImGui::SameLine(0, px(6));
    if (button(spec)) {
      path_ = suggested_;  // its ending belongs to the other kind
      sink.post(ShareCommand(ChooseShare{kind}));
    }
  }
  share_words(kKinds[static_cast<size_t>(view.share.kind)].about, colours().text2, width);
  ImGui::Dummy({0, px(2)});
}

void ShareBox::draw_saving(const ViewModel& view, CommandSink& sink, float width) {
  const Theme& t = colours();
  const ShareState& state = view.share;
  suggest(view);
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_Border, t.ctl);
  ImGui::SetNextItemWidth(width);
  const bool entered = ImGui::InputTextWithHint("##share", "Path of the file", &path_,
                                                ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_ElideLeft);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  if (state.running) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    draw_bar(ImGui::GetWindowDrawList(), at, {width, px(8)}, state.fraction(), t.accent, t.raised);
    ImGui::Dummy({width, px(12)});
    ButtonSpec cancel{"Cancel the file", Icon::none, ButtonKind::line};
    cancel.words = "Cancel";
    if (button(cancel)) sink.post(ShareCommand(StopShare{}));
    return;
  }
  const bool done = !state.saved.empty();
  ButtonSpec save{"Save the file", done ? Icon::check : Icon::none, ButtonKind::primary};
  save.words = done ? "Save again" : "Save";
  save.enabled = !path_.empty();
  if ((button(save) || entered) && save.enabled) sink.post(ShareCommand(StartShare{state.kind, path_}));
  ImGui::SameLine(0, px(8));
  ButtonSpec close{"Close", Icon::none, ButtonKind::line};
  if (button(close)) sink.post(ShareCommand(ShowShare{false}));
  share_words(state.problem, t.rejected_text, width);
  if (done) share_words("Written to " + state.saved, t.text2, width);
}

void ShareBox::draw(const ViewModel& view, CommandSink& sink) {
  if (!view.share.box_shown) {
    open_ = false;
    return;
  }
  if (!open_) {
    open_ = true;
    ImGui::OpenPopup(kSharePopup);
  }
  const float width = place_dialog(kShareWidth) - px(32);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(16), px(14)});
  ImGui::PushStyleColor(ImGuiCol_FrameBg, colours().card);
  if (ImGui::BeginPopup(kSharePopup)) {
    label(Type::title, colours().text, "Share");
    share_words(what_is_shared(view), colours().text2, width);
    ImGui::Dummy({0, px(2)});
    if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
    draw_kinds(view, sink, width);
    draw_saving(view, sink, width);
    if (ImGui::IsKeyPressed(ImGuiKey_Escape, false)) sink.post(ShareCommand(ShowShare{false}));
    ImGui::EndPopup();
  } else {
    sink.post(ShareCommand(ShowShare{false}));  // closed by a click outside
  }
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
}

}  // namespace canopy::app
