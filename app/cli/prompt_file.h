#pragma once
// Files of prompts to measure with: a JSON object on every line, as in assets/prompts.

#include <filesystem>
#include <string>
#include <vector>

namespace canopy::cli {

struct Prompt {
  std::string id;        // "gsm_01"; unique in its file
  std::string category;  // "gsm", "writing": results are grouped by it
  std::string text;      // the first message of the user
};

/// Reads a file whose lines have an `id` (or `question_id`), a `category` (or `suite`; without either the file's name
/// without its extension) and the user's first message: in `messages` as in chats, in `turns` as in MT-Bench, or in
/// `prompt`. Other fields and empty lines are skipped. Throws bad_input naming file, line and field.
std::vector<Prompt> read_prompts(const std::filesystem::path& path);

}  // namespace canopy::cli
