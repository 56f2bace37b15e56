#pragma once
// What an installed program is described by, made of its option parser: the completions of shells and the manual page.

#include <span>
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace canopy::app {

/// The shells that there are completions for.
inline constexpr std::string_view kShells[] = {"bash", "zsh", "fish"};

/// A script for one of kShells that completes the commands, options and values of `cli`. Options and commands of no
/// group are left out, as in the help.
std::string completions(const CLI::App& cli, std::string_view shell);

/// A page for man(1), section 1.
std::string manual_page(const CLI::App& cli);

/// Adds the hidden options --completions SHELL and --man, which print these and end the program. Packages call them.
void add_option_texts(CLI::App& cli);

}  // namespace canopy::app
