#include "app/conversation/attached_text.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/printable.h"
#include "engine/base/text_encoding.h"
#include "engine/text/utf8.h"

namespace canopy::app {
namespace {

/// The longest run of backticks in a text.
size_t longest_ticks(std::string_view text) {
  size_t longest = 0, run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

/// A file's name on one line, without backticks, so that it cannot end the line it stands in.
std::string plain_name(std::string name) {
  for (char& c : name)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F || c == '`') c = '_';
  return to_valid_utf8(name);
}

}  // namespace

bool looks_like_text(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  std::ifstream file(path, std::ios::binary);
  std::string start(4096, '\0');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<size_t>(file.gcount()));
  return begins_like_text(start);
}

Attachment read_attachment(const std::string& path) {
  const std::filesystem::path file = path;
  const std::string name = plain_name(file.filename().string());
  std::error_code error;
  if (!std::filesystem::exists(file, error)) throw bad_input("\"" + name + "\" is not there.");
  if (std::filesystem::is_directory(file, error))
    throw bad_input("\"" + name + "\" is a folder; attach the text files in it one by one.");
  if (!std::filesystem::is_regular_file(file, error)) throw bad_input("\"" + name + "\" is no file.");
  const uintmax_t size = std::filesystem::file_size(file, error);
  if (error) throw bad_input("\"" + name + "\" cannot be read: " + error.message() + ".");
  if (size == 0) throw bad_input("\"" + name + "\" is empty.");
  if (size > kLargestAttachment)
    throw bad_input("\"" + name + "\" has " + std::to_string(size) + " bytes; a text file of at most " +
                    std::to_string(kLargestAttachment) + " can be attached.");
  const MappedFile mapped = MappedFile::open(path);
  const auto bytes = mapped.bytes();
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  text = text_from_bytes(std::move(text), "\"" + name + "\"");
  if (text.empty()) throw bad_input("\"" + name + "\" is empty.");
  return {name, std::move(text), 0, 0};
}

std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kMostListed = 5;
  const size_t shown = names.size() <= kMostListed ? names.size() : kMostListed - 1;
  std::string words;
  for (size_t i = 0; i < shown; ++i) {
    if (i > 0) words += i + 1 == names.size() ? " and " : ", ";
    words += "\"" + printable(names[i]) + "\"";
  }
  return names.size() == shown ? words : words + " and " + std::to_string(names.size() - shown) + " more";
}

std::string fenced(const Attachment& attachment) {
  const std::string fence(std::max<size_t>(3, longest_ticks(attachment.text) + 1), '`');
  const bool ends = attachment.text.ends_with('\n');
  return attachment.name + ":\n" + fence + "\n" + attachment.text + (ends ? "" : "\n") + fence + "\n";
}

std::string question_with_files(const Message& question) {
  std::string all;
  for (const Attachment& each : question.attachments) all += fenced(each) + "\n";
  return all + question.text;
}

}  // namespace canopy::app
