#pragma once
// Files of prompts to measure with, a JSON object on every line as in assets/prompts, and those that an unfinished
// sweep keeps beside its file, so that whoever has the sweep here can go on with it.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/bench/sweep.h"

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

// The texts of a sweep's prompts. Its file does not have them, as it is given to others; until it is whole they lie in
// a file of their own beside it, so that whoever has the sweep here can go on with it.

/// "sweep.json.prompts.jsonl", a file as read_prompts() reads them.
std::filesystem::path prompts_path(const std::filesystem::path& file);

/// Writes them there. Throws bad_input naming path and reason.
void keep_prompts(const std::filesystem::path& file, const std::vector<MeasuredPrompt>& prompts);

/// The prompts of a sweep with their texts, in its order: those beside `file`, else those among `known`; what decides
/// is the hash of a text. Throws bad_input naming the prompts that are in neither, and what is wrong with the file
/// beside it.
std::vector<MeasuredPrompt> prompts_of(const Sweep& sweep, const std::filesystem::path& file,
                                       const std::vector<MeasuredPrompt>& known);

}  // namespace canopy
