#pragma once
// A template as a tree, and the parser that makes it: statements, and expressions by Jinja's precedence.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/text/jinja/operations.h"
#include "engine/text/jinja/value.h"

namespace canopy::jinja {

// A template as a tree. Lines count from 1.

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;  // null where a part is optional and absent

struct Literal {
  Value value;
};
struct Name {
  std::string name;
};
struct ListLiteral {
  std::vector<ExprPtr> items;
  bool is_tuple = false;
};
struct DictLiteral {
  std::vector<std::pair<ExprPtr, ExprPtr>> items;
};
struct Not {
  ExprPtr operand;
};
struct Sign {
  bool minus = false;
  ExprPtr operand;
};
struct Binary {
  BinaryOp op;
  ExprPtr left, right;
};
struct Concat {  // a ~ b ~ c
  std::vector<ExprPtr> parts;
};
struct Logic {  // gives one of its operands, as in Python
  bool is_and = false;
  ExprPtr left, right;
};
enum class CompareOp { equal, not_equal, less, less_equal, greater, greater_equal, in, not_in };
struct Comparison {  // a < b < c
  ExprPtr first;
  std::vector<std::pair<CompareOp, ExprPtr>> others;
};
struct Conditional {  // then if condition else otherwise
  ExprPtr condition, then, otherwise;
};
struct AttributeOf {
  ExprPtr value;
  std::string name;
};
struct ItemOf {
  ExprPtr value, key;
};
struct SliceOf {
  ExprPtr value, begin, end, step;
};
struct CallArguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr spread_list, spread_dict;  // *args, **kwargs
};
struct Call {
  ExprPtr callee;
  CallArguments arguments;
};
struct FilterCall {
  ExprPtr subject;  // null for a filter of a block: its text
  std::string name;
  CallArguments arguments;
};
struct TestCall {
  ExprPtr subject;
  std::string name;
  CallArguments arguments;
  bool negated = false;
};

struct Expr {
  int line = 0;
  std::variant<Literal, Name, ListLiteral, DictLiteral, Not, Sign, Binary, Concat, Logic, Comparison, Conditional,
               AttributeOf, ItemOf, SliceOf, Call, FilterCall, TestCall>
      node;
};

struct Statement;
using Block = std::vector<Statement>;

/// The target of an assignment: a name, an attribute of a namespace, or several of them.
struct Place {
  std::string name, attribute;  // attribute is empty for a plain name
};
struct Target {
  Place place;                // where it does not unpack
  std::vector<Target> parts;  // the value is a sequence with one item for each
  bool unpacks = false;
};

struct Output {
  std::string text;
};
struct Print {
  std::vector<ExprPtr> values;  // one after the other
};
struct If {
  std::vector<std::pair<ExprPtr, Block>> branches;  // the condition of else is null
};
struct For {
  Target target;
  ExprPtr iterable, condition;
  bool recursive = false;
  Block body, otherwise;
};
struct Set {
  Target target;
  ExprPtr value;
};
struct SetBlock {
  Target target;
  ExprPtr filters;  // null, or filters whose innermost subject is null
  Block body;
};
struct Parameter {
  std::string name;
  ExprPtr otherwise;  // null where there is no default
};
struct MacroBody {
  std::string name;
  std::vector<Parameter> parameters;
  Block body;
  bool uses_varargs = false, uses_kwargs = false, uses_caller = false;
};
struct MacroDefinition {
  std::shared_ptr<const MacroBody> macro;
};
struct CallBlock {
  std::shared_ptr<const MacroBody> caller;
  ExprPtr call;
};
struct FilterBlock {
  ExprPtr filters;
  Block body;
};
struct With {
  std::vector<std::pair<Target, ExprPtr>> assignments;
  Block body;
};
struct Group {  // {% generation %}: marks text for training, changes nothing
  Block body;
};
struct BlockBody {
  std::string name;
  Block body;
  bool is_scoped = false;    // sees the variables around it, not only those of the template
  bool is_required = false;  // must be filled by another template, of which there is none
};
struct BlockTag {
  std::shared_ptr<const BlockBody> block;
};
struct Autoescape {
  ExprPtr on;
  Block body;
};
struct Refused {  // a tag that fails when it is reached
  std::string message;
};
struct Break {};
struct Continue {};

struct Statement {
  int line = 0;
  std::variant<Output, Print, If, For, Set, SetBlock, MacroDefinition, CallBlock, FilterBlock, With, Group, BlockTag,
               Autoescape, Refused, Break, Continue>
      node;
};

/// A template: its statements, and the blocks among them by name.
struct Program {
  Block statements;
  std::map<std::string, std::shared_ptr<const BlockBody>, std::less<>> blocks;
};

/// Throws SyntaxFailure, naming the line.
Program parse(std::string_view source, const Limits& limits);

}  // namespace canopy::jinja
