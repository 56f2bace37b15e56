#pragma once
// Unicode's normal forms.

#include <string>
#include <string_view>

namespace canopy {

enum class UnicodeForm { nfc, nfd, nfkc, nfkd };

bool is_ascii(std::string_view text);

/// The text in a Unicode normal form. The text must be valid UTF-8. Runs of more than 256 combining marks, which no
/// language writes, are normalised in parts: sorting them takes quadratic time. Throws Error when memory runs out.
std::string to_unicode_form(std::string_view text, UnicodeForm form);

}  // namespace canopy
