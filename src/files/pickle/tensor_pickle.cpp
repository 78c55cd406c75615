#include "src/files/pickle/tensor_pickle.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <optional>
#include <unordered_set>

#include "src/base/bytes.h"

namespace ferry {
namespace {

/** A tensor takes about 40. */
constexpr int64_t kMaxOperations = 16'000'000;
/** Python pickles dictionaries in groups of a thousand. */
constexpr size_t kMaxStack = 1 << 20;
constexpr size_t kMaxMemo = 8 << 20;
constexpr size_t kMaxDimensions = 16;
constexpr size_t kMaxKey_bytes = 256;
constexpr size_t kMaxTensors = 1 << 20;

enum class Kind : uint8_t {
  none,
  boolean,
  integer,
  number,
  text,    // also bytes
  global,  // something callable, or a type
  tuple,
  list,
  dictionary,
  storage,
  tensor,
};

constexpr std::string_view name_of(Kind kind) {
  constexpr std::string_view kNames[] = {"None",         "a boolean", "an integer", "a number",
                                         "a text",       "a global",  "a tuple",    "a list",
                                         "a dictionary", "a storage", "a tensor"};
  return kNames[static_cast<size_t>(kind)];
}

enum class Call : uint8_t {
  ordered_dict,
  rebuild_tensor,        // storage, offset, shape, strides, ...: the storage has the type
  rebuild_typed_tensor,  // the seventh argument is the type
  rebuild_parameter,     // a tensor, ...; attributes behind it are passed over
  rebuild_from_type,     // one of the calls above, a class, its arguments, attributes
  tensor_class,
  described,  // a value of torch's that attributes have: passed over
  storage_type,
  untyped_storage,
  element_type,
};

struct Global {
  std::string_view module, name;
  Call call;
  StoredType type = StoredType::u8;
};

constexpr std::array kGlobals = {
    Global{"collections", "OrderedDict", Call::ordered_dict},
    Global{"torch._utils", "_rebuild_tensor", Call::rebuild_tensor},
    Global{"torch._utils", "_rebuild_tensor_v2", Call::rebuild_tensor},
    Global{"torch._utils", "_rebuild_tensor_v3", Call::rebuild_typed_tensor},
    Global{"torch._utils", "_rebuild_parameter", Call::rebuild_parameter},
    Global{"torch._utils", "_rebuild_parameter_with_state", Call::rebuild_parameter},
    Global{"torch._tensor", "_rebuild_from_type_v2", Call::rebuild_from_type},
    Global{"torch", "Tensor", Call::tensor_class},
    Global{"torch._tensor", "Tensor", Call::tensor_class},
    Global{"torch.nn.parameter", "Parameter", Call::tensor_class},
    Global{"torch.nn.parameter", "Buffer", Call::tensor_class},
    Global{"torch", "Size", Call::described},
    Global{"torch", "device", Call::described},
    Global{"torch.storage", "UntypedStorage", Call::untyped_storage},
    Global{"torch", "UntypedStorage", Call::untyped_storage},
    Global{"torch", "DoubleStorage", Call::storage_type, StoredType::f64},
    Global{"torch", "FloatStorage", Call::storage_type, StoredType::f32},
    Global{"torch", "HalfStorage", Call::storage_type, StoredType::f16},
    Global{"torch", "BFloat16Storage", Call::storage_type, StoredType::bf16},
    Global{"torch", "LongStorage", Call::storage_type, StoredType::i64},
    Global{"torch", "IntStorage", Call::storage_type, StoredType::i32},
    Global{"torch", "ShortStorage", Call::storage_type, StoredType::i16},
    Global{"torch", "CharStorage", Call::storage_type, StoredType::i8},
    Global{"torch", "ByteStorage", Call::storage_type, StoredType::u8},
    Global{"torch", "BoolStorage", Call::storage_type, StoredType::boolean},
    Global{"torch", "ComplexFloatStorage", Call::storage_type, StoredType::c64},
    Global{"torch", "float64", Call::element_type, StoredType::f64},
    Global{"torch", "float32", Call::element_type, StoredType::f32},
    Global{"torch", "float16", Call::element_type, StoredType::f16},
    Global{"torch", "bfloat16", Call::element_type, StoredType::bf16},
    Global{"torch", "int64", Call::element_type, StoredType::i64},
    Global{"torch", "int32", Call::element_type, StoredType::i32},
    Global{"torch", "int16", Call::element_type, StoredType::i16},
    Global{"torch", "int8", Call::element_type, StoredType::i8},
    Global{"torch", "uint64", Call::element_type, StoredType::u64},
    Global{"torch", "uint32", Call::element_type, StoredType::u32},
    Global{"torch", "uint16", Call::element_type, StoredType::u16},
    Global{"torch", "uint8", Call::element_type, StoredType::u8},
    Global{"torch", "bool", Call::element_type, StoredType::boolean},
    Global{"torch", "complex64", Call::element_type, StoredType::c64},
    Global{"torch", "float8_e4m3fn", Call::element_type, StoredType::f8_e4m3},
    Global{"torch", "float8_e4m3fnuz", Call::element_type, StoredType::f8_e4m3fnuz},
    Global{"torch", "float8_e5m2", Call::element_type, StoredType::f8_e5m2},
    Global{"torch", "float8_e5m2fnuz", Call::element_type, StoredType::f8_e5m2fnuz},
    Global{"torch", "float8_e8m0fnu", Call::element_type, StoredType::f8_e8m0},
};

/** Values of Python. Whatever holds others lies in an arena and is named by its place there, so
 * that nothing nests in memory however deep the pickle does. */
struct Value {
  Kind kind = Kind::none;
  int64_t integer = 0;    // or the place in the arena
  std::string_view text;  // in the pickle
};

struct Storage {
  std::string_view key;
  std::optional<StoredType> type;
  int64_t n_bytes = 0;
};

/** Elements of a view, and the index behind its last one in the storage; nothing where int64 does
 * not hold them. */
struct Extent {
  int64_t n_elements, end;
};
std::optional<Extent> extent_of(const PickledTensor& tensor) {
  Extent extent = {1, tensor.offset};
  for (int64_t size : tensor.shape) {
    const auto n = checked_mul(extent.n_elements, size);
    if (!n) return {};
    extent.n_elements = *n;
  }
  if (extent.n_elements == 0) return extent;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    const auto step = checked_mul(tensor.shape[i] - 1, tensor.strides[i]);
    if (!step || __builtin_add_overflow(extent.end, *step, &extent.end)) return {};
  }
  if (__builtin_add_overflow(extent.end, 1, &extent.end)) return {};
  return extent;
}

/** Python's stack machine, without whatever does not build tensors. */
class TensorMachine {
 public:
  explicit TensorMachine(std::span<const std::byte> pickle) : left_(pickle) {}

  /** Runs to the end; the dictionary that is left. */
  std::vector<PickledTensor> tensors() { return named_tensors(run()); }

  /** The texts of a list. */
  std::vector<std::string> texts() {
    std::vector<std::string> texts;
    for (const Value& value : values_of(expect(run(), Kind::list, "its list of storages")))
      texts.emplace_back(expect(value, Kind::text, "the key of a storage").text);
    return texts;
  }

  /** A flag of a dictionary; false where it has none. */
  bool flag(std::string_view key) {
    const Values& pairs = values_of(expect(run(), Kind::dictionary, "what it says of its system"));
    for (size_t i = 0; i + 1 < pairs.size(); i += 2)
      if (pairs[i].kind == Kind::text && pairs[i].text == key)
        return expect(pairs[i + 1], Kind::boolean, "what it says of its system").integer != 0;
    return false;
  }

  /** The bytes behind the pickle. */
  std::span<const std::byte> rest() const { return left_; }

 private:
  using Values = std::vector<Value>;

  Value run() {
    for (int64_t n = 0;; ++n) {
      if (n == kMaxOperations)
        refuse_torch_file(fmt::format("its pickle has over {} operations", n));
      const auto code = word<uint8_t>();
      if (code == '.') break;
      step(code);
    }
    return pop();
  }

  // --- the bytes ---

  std::span<const std::byte> take(uint64_t n_bytes) {
    if (n_bytes > left_.size()) refuse_torch_file("its pickle is cut off");
    const auto taken = left_.first(n_bytes);
    left_ = left_.subspan(n_bytes);
    return taken;
  }
  template <typename Word>
  Word word() {
    Word value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view text(uint64_t n_bytes) {
    const auto bytes = take(n_bytes);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::string_view line() {
    const std::string_view rest(reinterpret_cast<const char*>(left_.data()), left_.size());
    const size_t n = rest.find('\n');
    if (n == rest.npos) refuse_torch_file("its pickle is cut off");
    take(n + 1);
    return rest.substr(0, n);
  }
  int64_t long_integer(size_t n_bytes) {
    if (n_bytes > 8) refuse_torch_file("its pickle has an integer of over 64 bits");
    const auto bytes = take(n_bytes);
    if (bytes.empty()) return 0;
    // Two's complement: the last byte has the sign.
    uint64_t value = std::to_integer<uint8_t>(bytes.back()) & 0x80 ? ~uint64_t{0} : 0;
    for (size_t i = n_bytes; i-- > 0;)
      value = value << 8 | std::to_integer<uint64_t>(bytes[i]);
    return static_cast<int64_t>(value);
  }

  // --- the stack ---

  void push(Value value) {
    if (stack_.size() == kMaxStack) refuse_torch_file("its pickle keeps too many values at once");
    stack_.push_back(value);
  }
  void push_integer(int64_t value) { push({Kind::integer, value, {}}); }
  void push_text(std::string_view value) { push({Kind::text, 0, value}); }
  void push_values(Kind kind, Values values) {
    values_.push_back(std::move(values));
    push({kind, std::ssize(values_) - 1, {}});
  }
  /** The values above the last mark may be taken, no others. */
  Value pop() {
    if (stack_.size() <= floor()) refuse_torch_file("its pickle takes a value where there is none");
    const Value value = stack_.back();
    stack_.pop_back();
    return value;
  }
  Value& top() {
    if (stack_.size() <= floor()) refuse_torch_file("its pickle takes a value where there is none");
    return stack_.back();
  }
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  Values pop_to_mark() {
    if (marks_.empty()) refuse_torch_file("its pickle ends a group that has no beginning");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    Values values(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return values;
  }
  Values pop_n(size_t n) {
    Values values(n);
    for (size_t i = n; i-- > 0;)
      values[i] = pop();
    return values;
  }
  Value expect(const Value& value, Kind kind, std::string_view what) const {
    if (value.kind != kind)
      refuse_torch_file(
          fmt::format("{} is {}, expected {}", what, name_of(value.kind), name_of(kind)));
    return value;
  }
  Values& values_of(const Value& value) { return values_[static_cast<size_t>(value.integer)]; }
  void append(const Values& added, Kind kind, std::string_view what) {
    Values& values = values_of(expect(top(), kind, what));
    values.insert(values.end(), added.begin(), added.end());
  }
  void append_pairs(const Values& added) {
    if (added.size() % 2 != 0) refuse_torch_file("its pickle has a key without a value");
    append(added, Kind::dictionary, "what its pickle fills with keys");
  }

  // --- memory of values ---

  void remember(uint64_t place) {
    if (place >= kMaxMemo) refuse_torch_file("its pickle remembers too many values");
    if (place >= memo_.size()) memo_.resize(place + 1);
    memo_[place] = top();
  }
  void recall(uint64_t place) {
    if (place >= memo_.size() || !memo_[place])
      refuse_torch_file("its pickle recalls a value that it does not have");
    push(*memo_[place]);
  }

  // --- operations ---

  void step(uint8_t code) {
    switch (code) {
      case 0x80:  // PROTO
        if (const auto protocol = word<uint8_t>(); protocol > 5)
          refuse_torch_file(fmt::format("its pickle is of protocol {}, expected 2 to 5", protocol));
        return;
      case 0x95:  // FRAME: how much Python reads ahead
        take(8);
        return;
      case '(':
        if (marks_.size() == kMaxStack)
          refuse_torch_file("its pickle keeps too many values at once");
        marks_.push_back(stack_.size());
        return;
      case '0':
        pop();
        return;
      case 'N':
        return push({});
      case 0x88:  // NEWTRUE
      case 0x89:  // NEWFALSE
        return push({Kind::boolean, code == 0x88, {}});
      case 'J':
        return push_integer(word<int32_t>());
      case 'K':
        return push_integer(word<uint8_t>());
      case 'M':
        return push_integer(word<uint16_t>());
      case 0x8a:  // LONG1
        return push_integer(long_integer(word<uint8_t>()));
      case 'G':
        take(8);
        return push({Kind::number, 0, {}});
      case 'X':
      case 'B':
        return push_text(text(word<uint32_t>()));
      case 0x8c:  // SHORT_BINUNICODE
      case 'C':
        return push_text(text(word<uint8_t>()));
      case 0x8d:  // BINUNICODE8
        return push_text(text(word<uint64_t>()));
      case ')':
        return push_values(Kind::tuple, {});
      case 0x85:  // TUPLE1, TUPLE2, TUPLE3
      case 0x86:
      case 0x87:
        return push_values(Kind::tuple, pop_n(code - 0x84));
      case 't':
        return push_values(Kind::tuple, pop_to_mark());
      case ']':
        return push_values(Kind::list, {});
      case 'a':
        return append(pop_n(1), Kind::list, "what its pickle appends to");
      case 'e':
        return append(pop_to_mark(), Kind::list, "what its pickle appends to");
      case '}':
        return push_values(Kind::dictionary, {});
      case 's':
        return append_pairs(pop_n(2));
      case 'u':
        return append_pairs(pop_to_mark());
      case 'q':
        return remember(word<uint8_t>());
      case 'r':
        return remember(word<uint32_t>());
      case 0x94:  // MEMOIZE
        return remember(memo_.size());
      case 'h':
        return recall(word<uint8_t>());
      case 'j':
        return recall(word<uint32_t>());
      case 'c': {
        const std::string_view module = line();
        return push_global(module, line());
      }
      case 0x93: {  // STACK_GLOBAL
        const Values names = pop_n(2);
        return push_global(expect(names[0], Kind::text, "the module of a global").text,
                           expect(names[1], Kind::text, "the name of a global").text);
      }
      case 'R':
        return reduce(pop_n(2));
      case 'b': {  // BUILD: the attributes of an OrderedDict (its _metadata), which nobody needs
        pop();
        expect(top(), Kind::dictionary, "what its pickle gives attributes to");
        return;
      }
      case 'Q':
        return push_storage(pop());
      default:
        refuse_torch_file(
            fmt::format("its pickle has the operation {:#04x}, which no state of tensors needs; "
                        "nothing was executed",
                        code));
    }
  }

  void push_global(std::string_view module, std::string_view name) {
    for (size_t i = 0; i < kGlobals.size(); ++i)
      if (kGlobals[i].module == module && kGlobals[i].name == name)
        return push({Kind::global, static_cast<int64_t>(i), {}});
    constexpr size_t kShown = 200;
    refuse_torch_file(
        fmt::format(
            "its pickle asks for Python's '{}.{}', which no state of tensors needs; nothing "
            "was executed",
            module.substr(0, kShown), name.substr(0, kShown)),
        "it may be an attack: fetch the model as safetensors from whom you trust");
  }
  const Global& global_of(const Value& value, std::string_view what) const {
    return kGlobals[static_cast<size_t>(expect(value, Kind::global, what).integer)];
  }

  void reduce(const Values& call) {
    const Global& global = global_of(call[0], "what its pickle calls");
    expect(call[1], Kind::tuple, "the arguments of a call");
    const Values& arguments = values_of(call[1]);
    const auto check_n = [&](size_t n) {
      if (arguments.size() < n)
        refuse_torch_file(fmt::format("its pickle calls '{}' with {} arguments, expected {}",
                                      global.name, arguments.size(), n));
    };
    switch (global.call) {
      case Call::ordered_dict:
        if (!arguments.empty()) refuse_torch_file("its pickle makes an OrderedDict of arguments");
        return push_values(Kind::dictionary, {});
      case Call::rebuild_tensor:
        check_n(4);
        return push_tensor(arguments, {});
      case Call::rebuild_typed_tensor: {
        check_n(7);
        const Global& type = global_of(arguments[6], "the type of a tensor");
        if (type.call != Call::element_type)
          refuse_torch_file(fmt::format("the type of a tensor is '{}'", type.name));
        return push_tensor(arguments, type.type);
      }
      case Call::rebuild_parameter:
        check_n(1);
        return push(expect(arguments[0], Kind::tensor, "a parameter"));
      case Call::rebuild_from_type: {
        check_n(4);
        const Global& inner = global_of(arguments[0], "what a tensor is made by");
        // Not itself: a pickle could nest it as deep as it likes.
        if (inner.call != Call::rebuild_tensor && inner.call != Call::rebuild_typed_tensor &&
            inner.call != Call::rebuild_parameter)
          refuse_torch_file(fmt::format("a tensor is made by '{}'", inner.name));
        if (global_of(arguments[1], "the class of a tensor").call != Call::tensor_class)
          refuse_torch_file("a tensor is of a class that is none");
        const Values made_by = {arguments[0], arguments[2]};
        return reduce(made_by);
      }
      case Call::described:
        return push({});
      default:
        refuse_torch_file(fmt::format("its pickle calls '{}', which is a type", global.name));
    }
  }

  /** ("storage", type, key, device, number of elements, or of bytes where there is no type); before
   * torch 1.6 with the part of another storage that it is, or None. */
  void push_storage(const Value& id) {
    expect(id, Kind::tuple, "the name of a storage");
    const Values& parts = values_of(id);
    if (parts.size() != 5 && parts.size() != 6)
      refuse_torch_file(
          fmt::format("the name of a storage has {} parts, expected 5 or 6", parts.size()));
    if (parts.size() == 6 && parts[5].kind != Kind::none)
      refuse_torch_file("one of its storages is a part of another");
    if (expect(parts[0], Kind::text, "the kind of a storage").text != "storage")
      refuse_torch_file(fmt::format("its pickle names a '{}', expected a storage", parts[0].text));
    const Global& type = global_of(parts[1], "the type of a storage");
    Storage storage = {.key = expect(parts[2], Kind::text, "the key of a storage").text};
    // Each tensor has a copy; torch writes a number.
    if (storage.key.size() > kMaxKey_bytes)
      refuse_torch_file(fmt::format("the key of a storage has {} bytes, expected at most {}",
                                    storage.key.size(), kMaxKey_bytes));
    if (type.call == Call::storage_type)
      storage.type = type.type;
    else if (type.call != Call::untyped_storage)
      refuse_torch_file(fmt::format("the type of a storage is '{}'", type.name));
    const int64_t n = expect(parts[4], Kind::integer, "the size of a storage").integer;
    const auto n_bytes = checked_mul(n, storage.type ? bits_of(*storage.type) / 8 : 1);
    if (n < 0 || !n_bytes)
      refuse_torch_file(fmt::format("a storage of {} elements is not possible", n));
    storage.n_bytes = *n_bytes;
    storages_.push_back(storage);
    push({Kind::storage, std::ssize(storages_) - 1, {}});
  }

  std::vector<int64_t> integers(const Value& tuple, std::string_view what) {
    const Values& values = values_of(expect(tuple, Kind::tuple, what));
    if (values.size() > kMaxDimensions)
      refuse_torch_file(fmt::format("{} has {} numbers, expected at most {}", what, values.size(),
                                    kMaxDimensions));
    std::vector<int64_t> integers;
    for (const Value& value : values) {
      if (expect(value, Kind::integer, what).integer < 0)
        refuse_torch_file(fmt::format("{} has the negative number {}", what, value.integer));
      integers.push_back(value.integer);
    }
    return integers;
  }

  void push_tensor(const Values& arguments, std::optional<StoredType> type) {
    expect(arguments[0], Kind::storage, "the storage of a tensor");
    const Storage& storage = storages_[static_cast<size_t>(arguments[0].integer)];
    if (!type) type = storage.type;
    if (!type) refuse_torch_file("a tensor has no type");
    PickledTensor tensor = {
        .name = {},
        .type = *type,
        .shape = integers(arguments[2], "the shape of a tensor"),
        .strides = integers(arguments[3], "the strides of a tensor"),
        .offset = expect(arguments[1], Kind::integer, "the offset of a tensor").integer,
        .storage = std::string(storage.key),
        .storage_bytes = storage.n_bytes};
    const auto what = [&] {
      return fmt::format("a tensor of shape {}", format_shape(tensor.shape));
    };
    if (tensor.shape.size() != tensor.strides.size())
      refuse_torch_file(fmt::format("{} has {} strides", what(), tensor.strides.size()));
    const int64_t n_stored = storage.n_bytes / (bits_of(*type) / 8);
    const auto extent = extent_of(tensor);
    if (tensor.offset < 0 || !extent || (extent->n_elements > 0 && extent->end > n_stored))
      refuse_torch_file(fmt::format("{} leaves its storage of {} elements", what(), n_stored));
    // A view that repeats elements: a file of a few bytes could stand for any number of them.
    if (extent->n_elements > n_stored)
      refuse_torch_file(fmt::format("{} has more elements than its storage, {}", what(), n_stored));
    if (tensors_.size() == kMaxTensors) refuse_torch_file("its pickle has too many tensors");
    tensors_.push_back(std::move(tensor));
    push({Kind::tensor, std::ssize(tensors_) - 1, {}});
  }

  std::vector<PickledTensor> named_tensors(const Value& whole) {
    expect(whole, Kind::dictionary, "what it holds");
    const Values& pairs = values_of(whole);
    std::vector<PickledTensor> named;
    std::unordered_set<std::string_view> names;
    for (size_t i = 0; i < pairs.size(); i += 2) {
      const Value &key = pairs[i], &value = pairs[i + 1];
      if (value.kind != Kind::tensor) continue;
      if (named.size() == kMaxTensors) refuse_torch_file("its pickle has too many tensors");
      expect(key, Kind::text, "the name of a tensor");
      if (!names.insert(key.text).second)
        refuse_torch_file(fmt::format("the name '{}' appears twice", key.text));
      named.push_back(tensors_[static_cast<size_t>(value.integer)]);
      named.back().name = key.text;
    }
    if (named.empty())
      refuse_torch_file("it holds no tensors under names",
                        "give the model's weights, not the state of a training run");
    return named;
  }

  std::span<const std::byte> left_;
  Values stack_;
  std::vector<size_t> marks_;
  std::vector<std::optional<Value>> memo_;
  std::vector<Values> values_;
  std::vector<Storage> storages_;
  std::vector<PickledTensor> tensors_;
};

}  // namespace

int64_t PickledTensor::n_elements() const {
  int64_t count = 1;  // cannot overflow: it was checked
  for (int64_t size : shape)
    count *= size;
  return count;
}

std::vector<PickledTensor> read_tensor_pickle(std::span<const std::byte> pickle) {
  return TensorMachine(pickle).tensors();
}

std::vector<PickledTensor> take_tensor_pickle(std::span<const std::byte>& bytes) {
  TensorMachine machine(bytes);
  std::vector<PickledTensor> tensors = machine.tensors();
  bytes = machine.rest();
  return tensors;
}

std::vector<std::string> take_texts_pickle(std::span<const std::byte>& bytes) {
  TensorMachine machine(bytes);
  std::vector<std::string> texts = machine.texts();
  bytes = machine.rest();
  return texts;
}

bool take_flag_pickle(std::span<const std::byte>& bytes, std::string_view key) {
  TensorMachine machine(bytes);
  const bool flag = machine.flag(key);
  bytes = machine.rest();
  return flag;
}

}  // namespace ferry
