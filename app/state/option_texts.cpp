#include "app/state/option_texts.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include <CLI/CLI.hpp>

#include "engine/base/text.h"

namespace canopy::app {
namespace {

/// A command: the program itself or one of its subcommands, which may have some in turn.
struct ProgramCommand {
  std::vector<std::string> words;  // "canopy-cli", "trace", "show"
  const CLI::App* app = nullptr;

  std::string name() const {
    std::string all;
    for (const std::string& word : words) all += (all.empty() ? "" : " ") + word;
    return all;
  }
  std::vector<const CLI::App*> subcommands() const {
    return app->get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); });
  }
  std::vector<const CLI::Option*> options() const {
    return app->get_options(
        [](const CLI::Option* each) { return each->nonpositional() && !each->get_group().empty(); });
  }
  std::vector<const CLI::Option*> arguments() const {
    return app->get_options(
        [](const CLI::Option* each) { return each->get_positional() && !each->get_group().empty(); });
  }
};

/// The program and all commands below it, each behind the one that it belongs to.
void add_commands(std::vector<std::string> words, const CLI::App* app, std::vector<ProgramCommand>& all) {
  words.push_back(app->get_name());
  all.push_back({words, app});
  const std::vector<const CLI::App*> below = all.back().subcommands();
  for (const CLI::App* each : below) add_commands(words, each, all);
}

std::vector<ProgramCommand> commands_of(const CLI::App& cli) {
  std::vector<ProgramCommand> all;
  add_commands({}, &cli, all);
  return all;
}

bool takes_value(const CLI::Option* option) {
  return option->get_type_size_max() > 0 && option->get_items_expected_max() > 0;
}

/// "-m", "--model"
std::vector<std::string> names_of(const CLI::Option* option) {
  std::vector<std::string> names;
  for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// The words of the `{f16,f32}` that the parser writes behind the type of an option with fixed values.
std::vector<std::string> choices_of(const CLI::Option* option) {
  const std::string type = option->get_type_name();
  const size_t open = type.find('{'), close = type.find('}');
  std::vector<std::string> choices;
  if (open == std::string::npos || close == std::string::npos || close < open) return choices;
  for (size_t at = open + 1; at < close;) {
    const size_t end = std::min(type.find(',', at), close);
    choices.push_back(type.substr(at, end - at));
    at = end + 1;
  }
  return choices;
}

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : std::string(between)) + word;
  return all;
}

/// A text in single quotes. What ends them is written as `quote`: '\'' in bash and zsh, \' in fish.
std::string quoted(std::string_view text, std::string_view quote, bool doubles_backslash = false) {
  std::string all = "'";
  for (const char c : text) {
    if (c == '\'') {
      all += quote;
    } else {
      if (c == '\\' && doubles_backslash) all += c;
      all += c;
    }
  }
  return all + "'";
}
std::string shell_quoted(std::string_view text) {
  return quoted(text, "'\\''");
}
std::string fish_quoted(std::string_view text) {
  return quoted(text, "\\'", true);
}

/// A name for functions: "canopy-cli" -> "_canopy_cli".
std::string function_name(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return "_" + name;
}

/// The command that the words before the cursor name, for bash and zsh, which count them from `first`.
std::string find_command(const std::vector<ProgramCommand>& all, const std::string& before_cursor, int first,
                         const std::string& words) {
  std::string names;
  for (size_t i = 1; i < all.size(); ++i) names += (names.empty() ? "" : " | ") + shell_quoted(all[i].name());
  if (names.empty()) return "";
  return "  for ((i = " + std::to_string(first) + "; i < " + before_cursor +
         "; ++i)); do\n"
         "    case \"$command " +
         words +
         "\" in\n"
         "      " +
         names + ") command=\"$command " + words +
         "\" ;;\n"
         "    esac\n"
         "  done\n";
}

/// The cases of a `case` over "$command $previous": `of_value` writes what completes the value of an option.
template <class OfValue>
std::string cases_of_values(const std::vector<ProgramCommand>& all, OfValue&& of_value) {
  std::string text;
  for (const ProgramCommand& command : all) {
    for (const CLI::Option* option : command.options()) {
      if (!takes_value(option)) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : names_of(option)) patterns.push_back(shell_quoted(command.name() + " " + name));
      text += "    " + joined(patterns, " | ") + ") " + of_value(choices_of(option)) + " ;;\n";
    }
  }
  return text;
}

std::string bash_completions(const std::string& program, const std::vector<ProgramCommand>& all) {
  std::string text = "# Completions of " + program + " for bash, as `" + program +
                     " --completions bash` writes them.\n" + function_name(program) +
                     "() {\n"
                     "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=" +
                     program +
                     " options= commands= i\n"
                     "  # bash takes --option=value apart.\n"
                     "  if [[ $current == = ]]; then\n"
                     "    current=\n"
                     "  elif [[ $previous == = ]]; then\n"
                     "    previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
                     "  fi\n"
                     "  COMPREPLY=()\n";
  text += find_command(all, "COMP_CWORD", 1, "${COMP_WORDS[i]}");
  text += "  case \"$command $previous\" in\n";
  // Without an answer bash offers files.
  text += cases_of_values(all, [](const std::vector<std::string>& choices) {
    if (choices.empty()) return std::string("return");
    return "COMPREPLY=($(compgen -W " + shell_quoted(joined(choices, " ")) + " -- \"$current\")); return";
  });
  text += "  esac\n  case \"$command\" in\n";
  for (const ProgramCommand& command : all) {
    std::vector<std::string> options, commands;
    for (const CLI::Option* option : command.options())
      for (const std::string& name : names_of(option)) options.push_back(name);
    for (const CLI::App* each : command.subcommands()) commands.push_back(each->get_name());
    text += "    " + shell_quoted(command.name()) + ") options=" + shell_quoted(joined(options, " ")) +
            " commands=" + shell_quoted(joined(commands, " ")) + " ;;\n";
  }
  text +=
      "  esac\n"
      "  if [[ $current == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
      "  elif [[ -n $commands ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$commands\" -- \"$current\"))\n"
      "  fi\n"
      "}\n"
      "complete -o bashdefault -o default -F " +
      function_name(program) + " " + program + "\n";
  return text;
}

/// An entry of _describe: a name and, behind a colon, what it is.
std::string zsh_entry(std::string_view name, std::string_view about) {
  std::string entry;
  for (const char c : name) entry += c == ':' ? std::string("\\:") : std::string(1, c);
  return shell_quoted(entry + ":" + std::string(about));
}

std::string zsh_completions(const std::string& program, const std::vector<ProgramCommand>& all) {
  std::string text = "#compdef " + program + "\n# Completions of " + program + " for zsh, as `" + program +
                     " --completions zsh` writes them.\n" + function_name(program) +
                     "() {\n"
                     "  local command=" +
                     program +
                     " previous=${words[CURRENT-1]}\n"
                     "  local -a options commands\n"
                     "  local -i i\n"
                     "  if [[ $PREFIX == --*=* ]]; then\n"
                     "    previous=${PREFIX%%=*}\n"
                     "    compset -P '*='\n"
                     "  fi\n";
  text += find_command(all, "CURRENT", 2, "${words[i]}");
  text += "  case \"$command $previous\" in\n";
  text += cases_of_values(all, [](const std::vector<std::string>& choices) {
    if (choices.empty()) return std::string("_files; return");
    std::vector<std::string> words;
    for (const std::string& choice : choices) words.push_back(shell_quoted(choice));
    return "compadd -- " + joined(words, " ") + "; return";
  });
  text += "  esac\n  case \"$command\" in\n";
  for (const ProgramCommand& command : all) {
    text += "    " + shell_quoted(command.name()) + ")\n      options=(\n";
    for (const CLI::Option* option : command.options())
      for (const std::string& name : names_of(option))
        text += "        " + zsh_entry(name, option->get_description()) + "\n";
    text += "      )\n      commands=(\n";
    for (const CLI::App* each : command.subcommands())
      text += "        " + zsh_entry(each->get_name(), each->get_description()) + "\n";
    text += "      )\n      ;;\n";
  }
  text +=
      "  esac\n"
      "  if [[ $PREFIX == -* ]]; then\n"
      "    _describe -o option options\n"
      "  elif (( $#commands )); then\n"
      "    _describe command commands\n"
      "  else\n"
      "    _files\n"
      "  fi\n"
      "}\n" +
      function_name(program) + " \"$@\"\n";
  return text;
}

/// Under which words before the cursor fish offers what belongs to a command: all of its own, none of those below it.
std::string fish_condition(const ProgramCommand& command, bool excludes_below) {
  std::vector<std::string> all;
  for (size_t i = 1; i < command.words.size(); ++i) all.push_back("__fish_seen_subcommand_from " + command.words[i]);
  if (excludes_below) {
    std::string below;
    for (const CLI::App* each : command.subcommands()) below += " " + each->get_name();
    if (!below.empty()) all.push_back("not __fish_seen_subcommand_from" + below);
  }
  return all.empty() ? "" : " -n " + fish_quoted(joined(all, "; and "));
}

std::string fish_completions(const std::string& program, const std::vector<ProgramCommand>& all) {
  std::string text =
      "# Completions of " + program + " for fish, as `" + program + " --completions fish` writes them.\n";
  const std::string begin = "complete -c " + program;
  for (const ProgramCommand& command : all) {
    const std::string condition = fish_condition(command, true);
    for (const CLI::App* each : command.subcommands())
      text += begin + condition + " -f -a " + each->get_name() + " -d " + fish_quoted(each->get_description()) + "\n";
    for (const CLI::Option* option : command.options()) {
      text += begin + condition;
      for (const std::string& name : option->get_snames()) text += " -s " + name;
      for (const std::string& name : option->get_lnames()) text += " -l " + name;
      const std::vector<std::string> choices = choices_of(option);
      if (!choices.empty()) {
        text += " -x -a " + fish_quoted(joined(choices, " "));
      } else if (takes_value(option)) {
        text += " -r";
      }
      text += " -d " + fish_quoted(option->get_description()) + "\n";
    }
  }
  return text;
}

// The manual page, in the macros of man(7).

/// A text that roff takes as it is: no escape, and no line that begins a request.
std::string roff(std::string_view text) {
  std::string all;
  for (const char c : text) {
    if (c == '\\') {
      all += "\\e";
    } else if (c == '-') {
      all += "\\-";
    } else if ((c == '.' || c == '\'') && (all.empty() || all.back() == '\n')) {
      all += std::string("\\&") + c;
    } else {
      all += c;
    }
  }
  return all;
}

std::string bold(const std::string& text) {
  return "\\fB" + roff(text) + "\\fR";
}
std::string italic(const std::string& text) {
  return "\\fI" + roff(text) + "\\fR";
}

/// What stands for a value: its fixed words, or the name of its type without the range, which may be this machine's.
std::string value_words(const CLI::Option* option) {
  const std::vector<std::string> choices = choices_of(option);
  if (!choices.empty()) return joined(choices, "|");
  const std::string type = option->get_type_name();
  return type.substr(0, type.find(':'));
}

std::string manual_of_options(const ProgramCommand& command) {
  std::string text;
  for (const CLI::Option* argument : command.arguments()) {
    text += ".TP\n" + italic(argument->get_name(true)) + "\n" + roff(argument->get_description()) + "\n";
  }
  for (const CLI::Option* option : command.options()) {
    std::vector<std::string> names;
    for (const std::string& name : names_of(option)) names.push_back(bold(name));
    text += ".TP\n" + joined(names, ", ");
    if (takes_value(option)) text += " " + italic(value_words(option));
    text += "\n" + roff(option->get_description());
    if (takes_value(option) && !option->get_default_str().empty()) text += " [" + roff(option->get_default_str()) + "]";
    text += "\n";
  }
  return text;
}

std::string synopsis_of(const ProgramCommand& command) {
  std::string text = bold(command.name()) + " [" + italic("OPTIONS") + "]";
  for (const CLI::Option* argument : command.arguments()) {
    const std::string name = italic(argument->get_name(true));
    text += argument->get_required() ? " " + name : " [" + name + "]";
  }
  if (!command.subcommands().empty()) text += " " + italic("COMMAND");
  return text;
}

}  // namespace

std::string completions(const CLI::App& cli, std::string_view shell) {
  const std::vector<ProgramCommand> all = commands_of(cli);
  if (shell == "zsh") return zsh_completions(cli.get_name(), all);
  if (shell == "fish") return fish_completions(cli.get_name(), all);
  return bash_completions(cli.get_name(), all);
}

std::string manual_page(const CLI::App& cli) {
  const std::vector<ProgramCommand> all = commands_of(cli);
  std::string title = cli.get_name();
  std::transform(title.begin(), title.end(), title.begin(), [](unsigned char c) { return std::toupper(c); });
  std::string about = cli.get_description();  // "Canopy: text from a language model."
  if (about.starts_with("Canopy: ")) about.erase(0, 8);
  if (about.ends_with('.')) about.pop_back();
  std::string text = ".TH " + roff(title) + " 1 \"\" \"Canopy " CANOPY_VERSION "\" \"User Commands\"\n.SH NAME\n" +
                     roff(cli.get_name()) + " \\- " + roff(about) + "\n.SH SYNOPSIS\n" + synopsis_of(all.front()) +
                     "\n.SH OPTIONS\n" + manual_of_options(all.front());
  if (all.size() > 1) text += ".SH COMMANDS\n";
  for (size_t i = 1; i < all.size(); ++i) {
    text += ".SS " + roff(all[i].name()) + "\n" + synopsis_of(all[i]) + "\n.PP\n" +
            roff(all[i].app->get_description()) + "\n" + manual_of_options(all[i]);
  }
  if (const std::string footer = cli.get_footer(); !footer.empty()) text += ".SH NOTES\n" + roff(footer) + "\n";
  text +=
      ".SH FILES\n.TP\n\\fI~/.cache/canopy\\fR\n"
      "What can be made or fetched again; \\fBCANOPY_CACHE_DIR\\fR and \\fBXDG_CACHE_HOME\\fR move it.\n"
      ".TP\n\\fI~/.config/canopy\\fR\nSettings of the window; \\fBXDG_CONFIG_HOME\\fR moves it.\n"
      ".TP\n\\fI~/.local/share/canopy\\fR\nConversations and recordings; \\fBXDG_DATA_HOME\\fR moves it.\n"
      ".SH SEE ALSO\n" +
      bold(cli.get_name() == "canopy" ? "canopy-cli" : "canopy") + "(1)\n";
  return text;
}

void add_option_texts(CLI::App& cli) {
  // As --version: what is thrown is printed, and the program ends.
  const auto print = [&cli](const std::string& shell) {
    if (std::ranges::find(kShells, shell) == std::end(kShells))
      throw CLI::ValidationError("--completions is \"" + printable(shell) + "\"; it must be bash, zsh or fish.");
    throw CLI::CallForVersion(completions(cli, shell), 0);
  };
  cli.add_option_function<std::string>("--completions", print, "Print completions for a shell")->group("");
  const auto print_page = [&cli] { throw CLI::CallForVersion(manual_page(cli), 0); };
  cli.add_flag_callback("--man", print_page, "Print the manual page")->group("");
}

}  // namespace canopy::app
