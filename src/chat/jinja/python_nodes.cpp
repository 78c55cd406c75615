#include "src/chat/jinja/python_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "src/chat/jinja/python_values.h"

namespace ferry::chat {

using jinja::cast_stmt;
using jinja::cast_val;
using jinja::context;
using jinja::func_args;
using jinja::is_stmt;
using jinja::is_val;
using jinja::mk_val;
using jinja::statement_ptr;
using jinja::statements;
using jinja::value;

namespace {

bool is_generator(const value& v) {
  return is_val<Generator>(v);
}
bool is_object(const value& v) {
  return is_val<jinja::value_object>(v);
}

value make_list(std::vector<value> items) {
  auto list = mk_val<jinja::value_array>();
  for (value& item : items)
    list->push_back(item);
  return list;
}

value make_generator(std::vector<value> items) {
  auto list = std::make_shared<Generator>();
  for (value& item : items)
    list->push_back(item);
  return list;
}

/** The elements that a loop over the value goes through. */
std::vector<value> items_of(const value& v) {
  if (v->is_undefined()) return {};
  if (is_list(v)) return v->as_array();
  std::vector<value> items;
  if (is_object(v)) {
    for (const auto& pair : v->as_ordered_object())
      items.push_back(pair.first);
    return items;
  }
  if (!is_text(v)) raise(fmt::format("a value of type {} is not iterable", v->type()));
  for (std::string& character : characters_of(text_of(v)))
    items.push_back(make_text(std::move(character)));
  return items;
}

/** The text of the statements, as one value. */
value gather(const statements& body, context& ctx) {
  auto out = mk_val<jinja::value_array>();
  for (const statement_ptr& statement : body)
    out->push_back(statement->execute(ctx));
  auto text = mk_val<jinja::value_string>();
  jinja::gather_string_parts_recursive(out, text);
  return text;
}

value bound(std::string name, jinja::func_handler handler) {
  return mk_val<jinja::value_func>(name, std::move(handler));
}

// --- Members

constexpr std::string_view kChangers[] = {"append",     "clear",  "extend",  "insert",
                                          "pop",        "remove", "reverse", "sort",
                                          "setdefault", "update", "popitem"};

/** A method that the type has in Python; null where it has none of the name. */
value method_of(const value& object, const std::string& name) {
  if (is_val<Safe>(object)) raise("a safe text is only joined here");
  if (is_text(object)) {
    if (name == "format") {
      const auto found = object->get_builtins().find(name);
      return mk_val<jinja::value_func>(name, found->second, object);
    }
    const TextMethod method = text_method(name);
    if (!method) return nullptr;
    return bound(name, [method, text = text_of(object)](const func_args& args) {
      return method(text, args);
    });
  }
  const bool has_methods =
      !is_object(object) || cast_val<jinja::value_object>(object)->has_builtins;
  if ((is_list(object) || is_object(object)) && has_methods &&
      std::ranges::count(kChangers, name) > 0 &&
      !(is_object(object) && object->has_key(make_text(name))))
    raise(fmt::format("'{}' changes a value, which templates may not", name));
  if (!is_object(object) || !has_methods) return nullptr;
  constexpr std::string_view kObjects[] = {"get", "keys", "values", "items"};
  if (std::ranges::count(kObjects, name) == 0) return nullptr;
  const auto found = object->get_builtins().find(name);
  return mk_val<jinja::value_func>(name, found->second, object);
}

value undefined(const std::string& name) {
  return mk_val<jinja::value_undefined>(name);
}

value element_of(const value& object, const value& key) {
  if (is_generator(object)) raise("a generator has no elements to be named");
  if (is_val<jinja::value_int>(key) && is_text(object)) {
    const auto all = characters_of(text_of(object));
    const auto n = static_cast<int64_t>(all.size());
    const int64_t at = key->as_int() < 0 ? key->as_int() + n : key->as_int();
    return at < 0 || at >= n ? undefined("character") : make_text(all[static_cast<size_t>(at)]);
  }
  if (is_val<jinja::value_int>(key) && is_list(object)) {
    const auto& all = object->as_array();
    const auto n = static_cast<int64_t>(all.size());
    const int64_t at = key->as_int() < 0 ? key->as_int() + n : key->as_int();
    return at < 0 || at >= n ? undefined("element") : all[static_cast<size_t>(at)];
  }
  if (is_object(object) && key->is_hashable() && !key->is_undefined()) {
    value none;
    const value found = object->at(key, none);
    if (found) return found;
  }
  return nullptr;
}

struct Member : jinja::member_expression {
  using member_expression::member_expression;

  value execute_impl(context& ctx) const override {
    const value from = object->execute(ctx);
    if (from->is_undefined()) raise(fmt::format("{} is undefined", from->type()));
    if (computed && is_stmt<jinja::slice_expression>(property)) return slice(from, ctx);
    if (!computed && is_stmt<jinja::identifier>(property)) {
      const std::string& name = cast_stmt<jinja::identifier>(property)->val;
      if (value method = method_of(from, name)) return method;
      const value found = element_of(from, make_text(name));
      return found ? found : undefined(name);
    }
    const value key = property->execute(ctx);
    if (const value found = element_of(from, key)) return found;
    if (is_text(key))
      if (value method = method_of(from, text_of(key))) return method;
    return undefined("member");
  }

 private:
  value slice(const value& from, context& ctx) const {
    const auto* places = cast_stmt<jinja::slice_expression>(property);
    const auto of = [&](const statement_ptr& place) {
      return place ? place->execute(ctx) : value(nullptr);
    };
    const value start = of(places->start_expr), stop = of(places->stop_expr),
                step = of(places->step_expr);
    if (is_text(from)) {
      std::string text;
      for (const std::string& c : python_slice(characters_of(text_of(from)), start, stop, step))
        text += c;
      return make_text(text);
    }
    if (!is_list(from) || is_generator(from))
      raise(fmt::format("a value of type {} has no slices", from->type()));
    return make_list(python_slice(from->as_array(), start, stop, step));
  }
};

/** The engine's own copies its table of functions at each look. */
struct Identifier : jinja::identifier {
  using identifier::identifier;

  value execute_impl(context& ctx) const override {
    value found = ctx.get_val(val);
    if (!found->is_undefined()) return found;
    const auto& functions = jinja::global_builtins();
    const auto function = functions.find(val);
    if (function == functions.end()) return found;
    return mk_val<jinja::value_func>(val, function->second);
  }
};

// --- Operators

struct Binary : jinja::binary_expression {
  using binary_expression::binary_expression;

  value execute_impl(context& ctx) const override {
    const std::string& name = op.value;
    if (name == "and" || name == "or") {
      const value first = left->execute(ctx);
      return first->as_bool() == (name == "or") ? first : right->execute(ctx);
    }
    const value a = left->execute(ctx), b = right->execute(ctx);
    const auto truth = [](bool is) -> value { return mk_val<jinja::value_bool>(is); };
    if (name == "==") return truth(python_equal(a, b));
    if (name == "!=") return truth(!python_equal(a, b));
    if (name == "in") return truth(python_in(a, b));
    if (name == "not in") return truth(!python_in(a, b));
    const bool is_safe = is_val<Safe>(a) || is_val<Safe>(b);
    if (is_safe && name == "+" && is_text(a) && is_text(b))
      return make_safe(html_of(a) + html_of(b));
    if (is_safe && (name == "%" || name == "*")) raise("a safe text is only joined here");
    if (name == "~") return make_text(python_str(a) + python_str(b));
    if (is_numeric(a) && is_numeric(b)) return calculate(name, a, b);
    if (name == "+" && is_text(a) && is_text(b)) return make_text(text_of(a) + text_of(b));
    if (name == "+" && is_list(a) && is_list(b) && !is_generator(a) && !is_generator(b)) {
      std::vector<value> all = a->as_array();
      all.insert(all.end(), b->as_array().begin(), b->as_array().end());
      return make_list(std::move(all));
    }
    if (name == "*" && is_text(a) && is_val<jinja::value_int>(b)) return repeat(a, b);
    if (name == "*" && is_text(b) && is_val<jinja::value_int>(a)) return repeat(b, a);
    if (is_text(a) && is_text(b)) {
      const std::string x = text_of(a), y = text_of(b);
      if (name == "<") return truth(x < y);
      if (name == ">") return truth(x > y);
      if (name == "<=") return truth(x <= y);
      if (name == ">=") return truth(x >= y);
    }
    raise(fmt::format("{} {} {} is not possible", a->type(), name, b->type()));
  }

 private:
  static bool is_numeric(const value& v) {
    return is_val<jinja::value_int>(v) || is_val<jinja::value_float>(v);
  }

  static value repeat(const value& text, const value& times) {
    std::string out;
    for (int64_t i = 0; i < times->as_int(); ++i)
      out += text_of(text);
    return make_text(std::move(out));
  }

  static value calculate(const std::string& name, const value& a, const value& b) {
    const double x = a->as_float(), y = b->as_float();
    if (name == "<") return mk_val<jinja::value_bool>(x < y);
    if (name == ">") return mk_val<jinja::value_bool>(x > y);
    if (name == "<=") return mk_val<jinja::value_bool>(x <= y);
    if (name == ">=") return mk_val<jinja::value_bool>(x >= y);
    if ((name == "/" || name == "%") && y == 0) raise("division by zero");
    if (name == "/") return mk_val<jinja::value_float>(x / y);
    const bool is_whole = is_val<jinja::value_int>(a) && is_val<jinja::value_int>(b);
    if (is_whole) {
      const int64_t m = a->as_int(), n = b->as_int();
      if (name == "+") return mk_val<jinja::value_int>(m + n);
      if (name == "-") return mk_val<jinja::value_int>(m - n);
      if (name == "*") return mk_val<jinja::value_int>(m * n);
      if (name == "%") return mk_val<jinja::value_int>((m % n + n) % n);
    } else {
      if (name == "+") return mk_val<jinja::value_float>(x + y);
      if (name == "-") return mk_val<jinja::value_float>(x - y);
      if (name == "*") return mk_val<jinja::value_float>(x * y);
      if (name == "%") return mk_val<jinja::value_float>(x - y * std::floor(x / y));
    }
    raise(fmt::format("the operator {} is not known", name));
  }
};

// --- Filters

/** The arguments without their names' places: positional ones, and those with a name. */
value given(const func_args& args, size_t place, const char* name) {
  value v = args.get_kwarg(name, nullptr);
  size_t n = 0;
  for (const value& arg : args.get_args())
    if (!is_val<jinja::value_kwarg>(arg) && n++ == place && !v) v = arg;
  return v;
}

value to_json(const value& input, const func_args& args) {
  JsonStyle style;
  const auto flag = [&](const value& v) { return v && v->as_bool(); };
  style.ensure_ascii = flag(given(args, 0, "ensure_ascii"));
  if (const value indent = given(args, 1, "indent"); indent && !indent->is_none()) {
    style.indent = static_cast<int>(indent->as_int());
    style.item_separator = ",";
  }
  if (const value separators = given(args, 2, "separators"); separators && !separators->is_none()) {
    const auto& both = separators->as_array();
    if (both.size() != 2) raise("tojson takes two separators");
    style.item_separator = text_of(both[0]);
    style.key_separator = text_of(both[1]);
  }
  style.sort_keys = flag(given(args, 3, "sort_keys"));
  return make_text(python_json(input, style));
}

value by_default(const value& input, const func_args& args) {
  const value other = given(args, 0, "default_value"), boolean = given(args, 1, "boolean");
  const bool takes = input->is_undefined() || (boolean && boolean->as_bool() && !input->as_bool());
  if (!takes) return input;
  return other ? other : make_text("");
}

value length_of(const value& input) {
  int64_t n = 0;
  if (is_text(input))
    n = static_cast<int64_t>(characters_of(text_of(input)).size());
  else if (is_generator(input))
    raise("a generator has no length");
  else if (is_list(input))
    n = static_cast<int64_t>(input->as_array().size());
  else if (is_object(input))
    n = static_cast<int64_t>(input->as_ordered_object().size());
  else if (!input->is_undefined())
    raise(fmt::format("a value of type {} has no length", input->type()));
  return mk_val<jinja::value_int>(n);
}

value join(const value& input, const func_args& args) {
  const value between = given(args, 0, "d");
  if (given(args, 1, "attribute")) raise("join by an attribute is not known here");
  std::string out;
  bool is_first = true;
  for (const value& item : items_of(input)) {
    if (is_val<Safe>(item)) raise("a safe text is not joined by a filter here");
    if (!is_first && between) out += python_str(between);
    is_first = false;
    out += python_str(item);
  }
  return make_text(std::move(out));
}

value items(const value& input) {
  if (input->is_undefined()) return make_generator({});
  if (!is_object(input)) raise("items takes a mapping");
  std::vector<value> pairs;
  for (const auto& pair : input->as_ordered_object())
    pairs.push_back(mk_val<jinja::value_tuple>(pair));
  return make_generator(std::move(pairs));
}

/** An attribute's name as map and selectattr take it: with dots inside members of members. */
value attribute_of(value from, const value& name) {
  std::string rest = is_text(name) ? text_of(name) : std::to_string(name->as_int());
  for (bool is_last = false; !is_last;) {
    const size_t dot = rest.find('.');
    is_last = dot == rest.npos;
    const std::string part = rest.substr(0, dot);
    rest = is_last ? "" : rest.substr(dot + 1);
    if (from->is_undefined()) raise("an attribute of an undefined value");
    const bool is_place =
        !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    value found = is_place ? element_of(from, mk_val<jinja::value_int>(std::stoll(part)))
                           : element_of(from, make_text(part));
    from = found ? found : undefined(part);
  }
  return from;
}

bool passes(const value& item, const std::vector<value>& args, size_t first, context& ctx) {
  if (args.size() <= first) return item->as_bool();
  const std::string name = text_of(args[first]);
  const auto other = [&]() -> const value& {
    if (args.size() <= first + 1) raise(fmt::format("the test '{}' takes a value", name));
    return args[first + 1];
  };
  if (name == "equalto" || name == "eq" || name == "==") return python_equal(item, other());
  if (name == "ne" || name == "!=") return !python_equal(item, other());
  if (name == "in") return python_in(item, other());
  const auto& builtins = jinja::global_builtins();
  const auto found = builtins.find("test_is_" + name);
  if (found == builtins.end()) raise(fmt::format("the test '{}' is not known", name));
  func_args test_args(ctx);
  test_args.push_back(item);
  for (size_t i = first + 1; i < args.size(); ++i)
    test_args.push_back(args[i]);
  return found->second(test_args)->as_bool();
}

value apply_filter(std::string name, const value& input, const func_args& args, context& ctx);

/** The elements of what map, select and their like take: nothing of None, as in Jinja2. */
std::vector<value> items_if_any(const value& v) {
  return v->is_none() ? std::vector<value>() : items_of(v);
}

value select(const value& input, const func_args& args, bool by_attribute, bool keeps) {
  const std::vector<value>& all = args.get_args();
  if (by_attribute && all.empty()) raise("selectattr takes the name of an attribute");
  std::vector<value> out;
  for (const value& item : items_if_any(input)) {
    const value judged = by_attribute ? attribute_of(item, all[0]) : item;
    if (passes(judged, all, by_attribute ? 1 : 0, args.ctx) == keeps) out.push_back(item);
  }
  return make_generator(std::move(out));
}

value map(const value& input, const func_args& args) {
  const value attribute = args.get_kwarg("attribute", nullptr),
              otherwise = args.get_kwarg("default", nullptr);
  std::vector<value> out;
  for (const value& item : items_if_any(input)) {
    if (attribute) {
      value found = attribute_of(item, attribute);
      out.push_back(found->is_undefined() && otherwise ? otherwise : found);
      continue;
    }
    if (args.count() == 0) raise("map takes a filter or an attribute");
    func_args rest(args.ctx);
    for (size_t i = 1; i < args.count(); ++i)
      rest.push_back(args.get_args()[i]);
    out.push_back(apply_filter(text_of(args.get_args()[0]), item, rest, args.ctx));
  }
  return make_generator(std::move(out));
}

value unique(const value& input, const func_args& args) {
  if (args.count() > 0) raise("unique with arguments is not known here");
  // Texts are the same to Jinja's unique whatever their case.
  const auto folded = [](const value& v) {
    return is_text(v) ? make_text(in_lower_case(text_of(v))) : v;
  };
  std::vector<value> out;
  for (const value& item : items_of(input)) {
    const value key = folded(item);
    if (std::ranges::none_of(out,
                             [&](const value& seen) { return python_equal(folded(seen), key); }))
      out.push_back(item);
  }
  return make_generator(std::move(out));
}

/** The first or last element; undefined where there is none. */
value end_of(const value& input, bool is_first) {
  if (is_generator(input) && !is_first) raise("a generator has no last element");
  const std::vector<value> all = items_of(input);
  if (all.empty()) return undefined("element");
  return is_first ? all.front() : all.back();
}

value sorted_pairs(const value& input, const func_args& args) {
  if (!is_object(input)) raise("dictsort takes a mapping");
  if (args.count() > 0) raise("dictsort with arguments is not known here");
  auto pairs = input->as_ordered_object();
  const auto is_number = [](const auto& pair) { return is_val<jinja::value_int>(pair.first); };
  if (std::ranges::all_of(pairs, is_number)) {
    std::ranges::stable_sort(pairs, {}, [](const auto& pair) { return pair.first->as_int(); });
  } else {
    std::ranges::stable_sort(pairs, {},
                             [](const auto& pair) { return in_lower_case(text_of(pair.first)); });
  }
  std::vector<value> out;
  for (const auto& pair : pairs)
    out.push_back(mk_val<jinja::value_tuple>(pair));
  return make_list(std::move(out));
}

value text_filter(const std::string& name, const value& input, const func_args& args) {
  if (is_val<Safe>(input)) raise("a safe text is only joined here");
  const std::string text = python_str(input);
  if (name == "indent") {
    const auto& builtins = mk_val<jinja::value_string>()->get_builtins();
    return mk_val<jinja::value_func>(name, builtins.at(name), make_text(text))->invoke(args);
  }
  return text_method(name)(text, args);
}

value apply_filter(std::string name, const value& input, const func_args& args, context& ctx) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"count", "length"}, {"d", "default"}, {"e", "escape"}, {"trim", "strip"}};
  for (const auto& [alias, of] : kNames)
    if (name == alias) name = of;
  constexpr std::string_view kTexts[] = {"strip", "upper",   "lower", "capitalize",
                                         "title", "replace", "indent"};
  if (std::ranges::count(kTexts, name) > 0) return text_filter(name, input, args);
  if (name == "tojson") return to_json(input, args);
  if (name == "default") return by_default(input, args);
  if (name == "length") return length_of(input);
  if (name == "join") return join(input, args);
  if (name == "items") return items(input);
  if (name == "string") return make_text(python_str(input));
  if (name == "safe") return make_safe(python_str(input));
  if (name == "list") return make_list(items_of(input));
  if (name == "first" || name == "last") return end_of(input, name == "first");
  if (name == "map") return map(input, args);
  if (name == "unique") return unique(input, args);
  if (name == "dictsort") return sorted_pairs(input, args);
  if (name == "select" || name == "reject") return select(input, args, false, name == "select");
  if (name == "selectattr" || name == "rejectattr")
    return select(input, args, true, name == "selectattr");
  if (name == "reverse") {
    if (is_text(input)) {
      std::string out;
      for (const value& c : items_of(input))
        out.insert(0, text_of(c));
      return make_text(std::move(out));
    }
    std::vector<value> all = items_of(input);
    std::ranges::reverse(all);
    return make_generator(std::move(all));
  }
  constexpr std::string_view kEngine[] = {"int", "float", "abs", "min", "max", "sort"};
  if (std::ranges::count(kEngine, name) == 0)
    raise(fmt::format("the filter '{}' is not known", name));
  const value plain = is_generator(input) ? make_list(input->as_array()) : input;
  const auto& builtins = plain->get_builtins();
  const auto found = builtins.find(name);
  if (found == builtins.end())
    raise(fmt::format("the filter '{}' is not known for a value of type {}", name, input->type()));
  (void)ctx;
  return mk_val<jinja::value_func>(name, found->second, plain)->invoke(args);
}

value filtered(const statement_ptr& filter, const value& input, context& ctx) {
  func_args args(ctx);
  if (const auto* name = cast_stmt<jinja::identifier>(filter))
    return apply_filter(name->val, input, args, ctx);
  const auto* call = cast_stmt<jinja::call_expression>(filter);
  const auto* name = call ? cast_stmt<jinja::identifier>(call->callee) : nullptr;
  if (!name) raise("a filter has no name");
  for (const statement_ptr& arg : call->args)
    args.push_back(arg->execute(ctx));
  return apply_filter(name->val, input, args, ctx);
}

struct Filter : jinja::filter_expression {
  using filter_expression::filter_expression;
  value execute_impl(context& ctx) const override {
    return filtered(filter, operand->execute(ctx), ctx);
  }
};

struct FilterBlock : jinja::filter_statement {
  using filter_statement::filter_statement;
  value execute_impl(context& ctx) const override {
    return filtered(filter, gather(body, ctx), ctx);
  }
};

// --- Statements

/** Prints the value of {{ ... }}. */
struct Print : jinja::expression {
  explicit Print(statement_ptr of) : of_(std::move(of)) { pos = of_->pos; }
  value execute_impl(context& ctx) const override {
    const value v = of_->execute(ctx);
    return is_text(v) ? v : make_text(python_str(v));
  }

 private:
  statement_ptr of_;
};

struct If : jinja::if_statement {
  using if_statement::if_statement;
  value execute_impl(context& ctx) const override {
    return gather(test->execute(ctx)->as_bool() ? body : alternate, ctx);
  }
};

/** No variable passes from a round to the next, as in Jinja2. */
struct For : jinja::for_statement {
  using for_statement::for_statement;

  value execute_impl(context& ctx) const override {
    const auto* chosen = cast_stmt<jinja::select_expression>(iterable);
    const value over = (chosen ? chosen->lhs : iterable)->execute(ctx);
    std::vector<value> all = items_of(over);
    if (chosen) {
      std::vector<value> passing;
      for (const value& item : all) {
        context round(ctx);
        assign(item, round);
        if (chosen->test->execute(round)->as_bool()) passing.push_back(item);
      }
      all = std::move(passing);
    }
    if (all.empty()) return gather(default_block, ctx);
    auto out = mk_val<jinja::value_array>();
    for (size_t i = 0; i < all.size(); ++i) {
      context round(ctx);
      round.set_val("loop", loop_of(all, i));
      assign(all[i], round);
      try {
        for (const statement_ptr& statement : body)
          out->push_back(statement->execute(round));
      } catch (const jinja::continue_statement::signal&) {
        continue;
      } catch (const jinja::break_statement::signal&) {
        break;
      }
    }
    auto text = mk_val<jinja::value_string>();
    jinja::gather_string_parts_recursive(out, text);
    return text;
  }

 private:
  void assign(const value& item, context& round) const {
    if (const auto* name = cast_stmt<jinja::identifier>(loopvar)) {
      round.set_val(name->val, item);
      return;
    }
    const auto* names = cast_stmt<jinja::tuple_literal>(loopvar);
    const std::vector<value> parts = items_of(item);
    if (!names || names->val.size() != parts.size()) raise("a loop's names do not fit its items");
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto* name = cast_stmt<jinja::identifier>(names->val[i]);
      if (!name) raise("a loop's name is no name");
      round.set_val(name->val, parts[i]);
    }
  }

  static value loop_of(const std::vector<value>& all, size_t i) {
    const auto n = static_cast<int64_t>(all.size()), at = static_cast<int64_t>(i);
    const auto number = [](int64_t v) -> value { return mk_val<jinja::value_int>(v); };
    auto loop = mk_val<jinja::value_object>();
    loop->has_builtins = false;
    loop->insert("index", number(at + 1));
    loop->insert("index0", number(at));
    loop->insert("revindex", number(n - at));
    loop->insert("revindex0", number(n - at - 1));
    loop->insert("first", mk_val<jinja::value_bool>(at == 0));
    loop->insert("last", mk_val<jinja::value_bool>(at == n - 1));
    loop->insert("length", number(n));
    loop->insert("previtem", at > 0 ? all[i - 1] : undefined("previtem"));
    loop->insert("nextitem", at + 1 < n ? all[i + 1] : undefined("nextitem"));
    return loop;
  }
};

struct Macro : jinja::macro_statement {
  using macro_statement::macro_statement;

  value execute_impl(context& ctx) const override {
    const std::string& called = cast_stmt<jinja::identifier>(name)->val;
    ctx.set_val(called, bound(called, [this](const func_args& given) {
                  context inside(given.ctx);
                  bind(given, inside);
                  return gather(body, inside);
                }));
    return undefined("macro");
  }

 private:
  void bind(const func_args& given, context& inside) const {
    std::vector<value> in_order;
    for (const value& v : given.get_args())
      if (!is_val<jinja::value_kwarg>(v)) in_order.push_back(v);
    if (in_order.size() > args.size()) raise("a macro got too many arguments");
    for (size_t i = 0; i < args.size(); ++i) {
      const auto* with_default = cast_stmt<jinja::keyword_argument_expression>(args[i]);
      const auto* id = with_default ? cast_stmt<jinja::identifier>(with_default->key)
                                    : cast_stmt<jinja::identifier>(args[i]);
      if (!id) raise("a macro's argument has no name");
      value v = given.get_kwarg(id->val, nullptr);
      if (i < in_order.size()) v = in_order[i];
      if (!v && with_default) v = with_default->val->execute(inside);
      inside.set_val(id->val, v ? v : undefined(id->val));
    }
  }
};

// --- Putting them in place

void rewrite(statement_ptr& node);

void rewrite_all(statements& nodes) {
  for (statement_ptr& node : nodes)
    rewrite(node);
}

/** Expressions print in a body. */
void rewrite_body(statements& body) {
  for (statement_ptr& node : body) {
    const bool is_printed =
        is_stmt<jinja::expression>(node) && !is_stmt<jinja::string_literal>(node);
    rewrite(node);
    if (is_printed) node = std::make_unique<Print>(std::move(node));
  }
}

template <typename New, typename... Parts>
void replace(statement_ptr& node, Parts&&... parts) {
  const size_t pos = node->pos;
  auto made = std::make_unique<New>(std::forward<Parts>(parts)...);
  made->pos = pos;
  node = std::move(made);
}

void rewrite_call(jinja::call_expression& call) {
  rewrite(call.callee);
  rewrite_all(call.args);
}

/** A filter or a test: its name is no variable. */
void rewrite_arguments(statement_ptr& filter) {
  if (auto* call = cast_stmt<jinja::call_expression>(filter)) rewrite_all(call->args);
}

void rewrite(statement_ptr& node) {
  if (!node) return;
  if (auto* n = cast_stmt<jinja::identifier>(node)) {
    replace<Identifier>(node, std::string(n->val));
  } else if (auto* n = cast_stmt<jinja::member_expression>(node)) {
    rewrite(n->object);
    if (n->computed) rewrite(n->property);
    replace<Member>(node, std::move(n->object), std::move(n->property), bool(n->computed));
  } else if (auto* n = cast_stmt<jinja::binary_expression>(node)) {
    rewrite(n->left);
    rewrite(n->right);
    replace<Binary>(node, n->op, std::move(n->left), std::move(n->right));
  } else if (auto* n = cast_stmt<jinja::filter_expression>(node)) {
    rewrite(n->operand);
    rewrite_arguments(n->filter);
    replace<Filter>(node, std::move(n->operand), std::move(n->filter));
  } else if (auto* n = cast_stmt<jinja::filter_statement>(node)) {
    rewrite_arguments(n->filter);
    rewrite_body(n->body);
    replace<FilterBlock>(node, std::move(n->filter), std::move(n->body));
  } else if (auto* n = cast_stmt<jinja::if_statement>(node)) {
    rewrite(n->test);
    rewrite_body(n->body);
    rewrite_body(n->alternate);
    replace<If>(node, std::move(n->test), std::move(n->body), std::move(n->alternate));
  } else if (auto* n = cast_stmt<jinja::for_statement>(node)) {
    rewrite(n->iterable);
    rewrite_body(n->body);
    rewrite_body(n->default_block);
    replace<For>(node, std::move(n->loopvar), std::move(n->iterable), std::move(n->body),
                 std::move(n->default_block));
  } else if (auto* n = cast_stmt<jinja::macro_statement>(node)) {
    for (statement_ptr& arg : n->args)
      if (auto* with_default = cast_stmt<jinja::keyword_argument_expression>(arg))
        rewrite(with_default->val);
    rewrite_body(n->body);
    replace<Macro>(node, std::move(n->name), std::move(n->args), std::move(n->body));
  } else if (auto* n = cast_stmt<jinja::set_statement>(node)) {
    // The target of an assignment is no value.
    rewrite(n->val);
    rewrite_body(n->body);
  } else if (auto* n = cast_stmt<jinja::call_statement>(node)) {
    rewrite_call(*cast_stmt<jinja::call_expression>(n->call));
    rewrite_body(n->body);
  } else if (auto* n = cast_stmt<jinja::call_expression>(node)) {
    rewrite_call(*n);
  } else if (auto* n = cast_stmt<jinja::keyword_argument_expression>(node)) {
    rewrite(n->val);
  } else if (auto* n = cast_stmt<jinja::test_expression>(node)) {
    rewrite(n->operand);
    rewrite_arguments(n->test);
  } else if (auto* n = cast_stmt<jinja::unary_expression>(node)) {
    rewrite(n->argument);
  } else if (auto* n = cast_stmt<jinja::ternary_expression>(node)) {
    rewrite(n->condition);
    rewrite(n->true_expr);
    rewrite(n->false_expr);
  } else if (auto* n = cast_stmt<jinja::select_expression>(node)) {
    rewrite(n->lhs);
    rewrite(n->test);
  } else if (auto* n = cast_stmt<jinja::slice_expression>(node)) {
    rewrite(n->start_expr);
    rewrite(n->stop_expr);
    rewrite(n->step_expr);
  } else if (auto* n = cast_stmt<jinja::spread_expression>(node)) {
    rewrite(n->argument);
  } else if (auto* n = cast_stmt<jinja::array_literal>(node)) {
    rewrite_all(n->val);
  } else if (auto* n = cast_stmt<jinja::tuple_literal>(node)) {
    rewrite_all(n->val);
  } else if (auto* n = cast_stmt<jinja::object_literal>(node)) {
    for (auto& [key, item] : n->val) {
      rewrite(key);
      rewrite(item);
    }
  }
}

}  // namespace

void make_pythonic(jinja::program& program) {
  rewrite_body(program.body);
}

std::string run(const jinja::program& program, context& ctx) {
  const value text = gather(program.body, ctx);
  return text_of(text);
}

}  // namespace ferry::chat
