#pragma once
// Text files that go with a question.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "app/conversation/message.h"

namespace canopy::app {

inline constexpr size_t kLargestAttachment = 1024 * 1024;  // bytes
inline constexpr size_t kMostAttachments = 8;              // of a question

/// Whether a path is a file that begins like text, so that it may be meant to be attached.
bool looks_like_text(const std::string& path);

/// Reads a text file to attach, as UTF-8 (text_from_bytes()). Throws bad_input naming the file where it cannot be read,
/// is no regular file, is empty, larger than kLargestAttachment, or no text in a known encoding.
Attachment read_attachment(const std::string& path);

/// Names of files in a sentence, the first of them: "a.txt", "b.txt" and 3 more
std::string listed(const std::vector<std::string>& names);

/// An attachment as it is sent: its name, then its text in a code block that nothing inside can close.
std::string fenced(const Attachment& attachment);

/// What a question puts to the model: its files, then its text.
std::string question_with_files(const Message& question);

}  // namespace canopy::app
