#include "app/settings/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <ostream>
#include <utility>
#include <vector>

#include "app/base/number_options.h"
#include "engine/base/error.h"
#include "engine/base/paths.h"
#include "engine/base/text_encoding.h"
#include "engine/devices/devices.h"

namespace canopy::app {
namespace {

uint32_t parse_side(const std::string& text, const std::string& whole) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < kMinSide || value > kMaxSide)
    throw bad_input("The size is \"" + whole + "\"; it must be WIDTHxHEIGHT, each " + std::to_string(kMinSide) +
                    " to " + std::to_string(kMaxSide) + " pixels.");
  return value;
}

/// Adds the options of SamplingSettings. Returns those whose values are saved from one start to the next.
std::vector<const CLI::Option*> add_sampling(CLI::App& cli, SamplingSettings& sampling, bool& drawn) {
  cli.add_option("--seed", sampling.seed, "Of the first reply; each reply after it takes the next one; -1 draws it")
      ->transform(seeds(kMaxSeed, drawn))
      ->capture_default_str();
  return {cli.add_option("--temperature", sampling.temperature, "0 takes the likeliest token")
              ->transform(numbers(0.0f, kMaxTemperature))
              ->capture_default_str(),
          cli.add_option("--top-p", sampling.top_p, "Draw from the likeliest tokens of this total probability")
              ->transform(numbers(kMinTopP, 1.0f))
              ->capture_default_str(),
          cli.add_option("--min-p", sampling.min_p, "Leave out tokens below this share of the likeliest one")
              ->transform(numbers(0.0f, kMaxMinP))
              ->capture_default_str(),
          cli.add_option("--repetition-penalty", sampling.repetition_penalty,
                         "Makes what was written less likely; 1 is off")
              ->transform(numbers(kMinPenalty, kMaxPenalty))
              ->capture_default_str()};
}

}  // namespace

void parse_size(const std::string& text, uint32_t& width, uint32_t& height) {
  const size_t cross = text.find('x');
  const bool split = cross != std::string::npos;
  width = parse_side(split ? text.substr(0, cross) : "", text);
  height = parse_side(split ? text.substr(cross + 1) : "", text);
}

std::string default_model_path() {
  try {
    return (cache_dir() / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf").string();
  } catch (const Error&) {
    return "";  // no cache folder can be made: the window then offers to open a model
  }
}

std::optional<AppOptions> parse_options(int argc, const char* const* argv, std::ostream& out, std::ostream& err,
                                        int& exit_code) {
  AppOptions options;
  std::string size = "1280x800", theme = "dark", layout = "watch", quantize = "none", kv = "f16";
  bool seed_drawn = false;
  CLI::App cli("Canopy: chat with a language model on your own GPU.", "canopy");
  cli.set_version_flag("--version", "canopy " CANOPY_VERSION);
  cli.add_option("--model", options.model, "A GGUF file or a Hugging Face folder; default: SmolLM2 from the cache");
  cli.add_option("--device", options.device, device_help());
  cli.add_option("--quantize", quantize,
                 "Weights stored as F32, F16 or BF16 while loading: none keeps them, q8_0 and q4_k quantize them (8.5 "
                 "and 4.5 bits each), auto does so only where the model would not fit")
      ->check(CLI::IsMember({"none", "auto", "q8_0", "q4_k"}))
      ->capture_default_str();
  cli.add_option("--kv", kv,
                 "Type of the K/V cache; q8_0 takes little more than half the memory of f16. Each writes its own text")
      ->check(CLI::IsMember({"f16", "f32", "q8_0"}))
      ->capture_default_str();
  cli.add_option("--kernels", options.settings.kernels, kKernelsHelp)
      ->check(CLI::IsMember(kernel_names()))
      ->capture_default_str();
  cli.add_option("--threads", options.settings.threads, kThreadsHelp)->transform(numbers<uint32_t>(1, most_threads()));
  cli.add_option("--prompt", options.prompt, "A first message to send");
  CLI::Option* replay = cli.add_option("--replay", options.replay, "Show a recorded trace; needs no GPU and no model");
  cli.add_option("--round", options.round, "With --replay: the round to show, counted from 0")
      ->transform(numbers<uint64_t>(0, UINT64_MAX))
      ->needs(replay);
  cli.add_flag("--dump-json", options.dump_json,
               "With --replay: write the trace and its statistics as JSON, draw nothing")
      ->needs(replay);
  cli.add_flag("--offscreen", options.offscreen, "No window: answer a prompt, print the text, write a picture, exit");
  cli.add_option("--shot", options.shot,
                 "Write a PNG of the window after the reply (off-screen default: out/canopy.png)");
  const CLI::Option* size_option =
      cli.add_option("--size", size, "Window size in pixels, WIDTHxHEIGHT; default: as it was left")
          ->capture_default_str();
  const CLI::Option* scale_option = cli.add_option("--scale", options.scale, "Interface scale; default: as it was left")
                                        ->transform(numbers(kMinScale, kMaxScale))
                                        ->capture_default_str();
  const CLI::Option* theme_option = cli.add_option("--theme", theme, "Colours; default: as they were left")
                                        ->check(CLI::IsMember({"dark", "light", "projector"}))
                                        ->capture_default_str();
  const CLI::Option* layout_option = cli.add_option("--layout", layout, "The window's layout; default: as it was left")
                                         ->check(CLI::IsMember({"watch", "what-if", "lab"}))
                                         ->capture_default_str();
  const CLI::Option* limit_option =
      cli.add_option("--max-tokens", options.max_tokens, "Longest reply; default: as it was set")
          ->transform(numbers(1u, kMostMaxTokens))
          ->capture_default_str();
  const std::vector<const CLI::Option*> sampling = add_sampling(cli, options.sampling, seed_drawn);
  cli.add_flag("--exit-after-reply", options.exit_after_reply, "Close the window when the reply to --prompt is done");
  cli.add_flag("!--no-system-fonts", options.system_fonts,
               "Only the built-in fonts: the same picture on every machine");
  cli.add_flag("--validate", options.validate, "Check the window's drawing with the Vulkan validation layer");
  try {
    cli.parse(argc, argv);
    parse_size(size, options.width, options.height);
    options.prompt = text_from_bytes(std::move(options.prompt), "The text of --prompt");
  } catch (const CLI::ParseError& e) {
    exit_code = cli.exit(e, out, err) == 0 ? 0 : 2;
    return std::nullopt;
  } catch (const Error& e) {
    err << e.what() << "\n";
    exit_code = 2;
    return std::nullopt;
  }
  if (seed_drawn) err << "The seed was drawn: --seed " << options.sampling.seed << " repeats it.\n";
  options.quantize = quantize_on_load_from(quantize).value_or(QuantizeOnLoad::none);
  options.kv = checked_cache_type(kv);
  for (const ThemeKind kind : {ThemeKind::light, ThemeKind::projector})
    if (theme == to_string(kind)) options.theme = kind;
  for (const WindowLayout each : {WindowLayout::what_if, WindowLayout::lab})
    if (layout == to_string(each)) options.layout = each;
  options.layout_given = layout_option->count() > 0;
  options.size_given = size_option->count() > 0;
  options.scale_given = scale_option->count() > 0;
  options.theme_given = theme_option->count() > 0;
  options.sampling_given = std::any_of(sampling.begin(), sampling.end(), [](auto* o) { return o->count() > 0; });
  options.max_tokens_given = limit_option->count() > 0;
  options.model_given = !options.model.empty();
  if (!options.model_given) options.model = default_model_path();
  return options;
}

}  // namespace canopy::app
