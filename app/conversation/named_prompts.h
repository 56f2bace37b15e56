#pragma once
// System prompts that the user keeps under names, in prompts.json of the configuration folder.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace canopy::app {

inline constexpr size_t kMostPrompts = 100;
inline constexpr size_t kLongestPromptName = 60;           // bytes
inline constexpr size_t kLongestPrompt = 16 * 1024;        // bytes of its text
inline constexpr size_t kMaxPromptFile = 4 * 1024 * 1024;  // bytes; more than all prompts can take

struct NamedPrompt {
  std::string name, text;
  bool operator==(const NamedPrompt&) const = default;
};

/// Keeps a text under a name, in place of one that has it; blanks around the name do not count. Throws bad_input where
/// the name or the text is empty or too long, or there are kMostPrompts of other names.
void save_prompt(std::vector<NamedPrompt>& prompts, std::string_view name, std::string_view text);

/// Gives a prompt another name. Throws bad_input where there is none of that name, the new one is empty, too long or
/// that of another prompt.
void rename_prompt(std::vector<NamedPrompt>& prompts, std::string_view from, std::string_view to);

/// Takes a prompt away; one that is not there is no error.
void delete_prompt(std::vector<NamedPrompt>& prompts, std::string_view name);

/// Name of the prompt with this text; empty where none has it.
std::string name_of_prompt(const std::vector<NamedPrompt>& prompts, std::string_view text);

/// Reads the file; one that is not there has none. Throws bad_input naming the file, the field and what is allowed.
std::vector<NamedPrompt> read_prompts(const std::string& path);

/// Replaces the file. On failure the old one stays. Throws bad_input naming path and reason.
void write_prompts(const std::string& path, const std::vector<NamedPrompt>& prompts);

}  // namespace canopy::app
