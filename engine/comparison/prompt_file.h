#pragma once
// Files of prompts to measure with: a JSON object on every line, as in assets/prompts.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace canopy {

struct MeasuredPrompt {
  std::string id;        // "gsm_01"; unique in its file
  std::string category;  // "gsm", "writing": results are grouped by it
  std::string text;      // the first message of the user
};

/// Reads a file whose lines have an `id` (or `question_id`), a `category` (or `suite`; without either the file's name
/// without its extension) and the user's first message: in `messages` as in chats, in `turns` as in MT-Bench, or in
/// `prompt`. Other fields and empty lines are skipped. May be a pipe, and "-" is standard input. Throws bad_input
/// naming file, line and field.
std::vector<MeasuredPrompt> read_prompts(const std::filesystem::path& path);

/// The file, or all *.jsonl files of the folder in the order of their names. Throws bad_input for a folder without any.
std::vector<std::filesystem::path> prompt_files(const std::filesystem::path& path);

/// Reads the prompts of the files, and of all *.jsonl files of the folders in the order of their names. Throws
/// bad_input for a file that is missing or wrong, and for a folder without such files.
std::vector<MeasuredPrompt> read_all_prompts(const std::vector<std::filesystem::path>& paths);

/// The first `limit` of each category (0: all), grouped by category in order of first appearance.
std::vector<MeasuredPrompt> limit_by_category(const std::vector<MeasuredPrompt>& prompts, uint32_t limit);

}  // namespace canopy
