#include "spirv/object.hpp"

#include <flatbuffers/flatbuffers.h>

#include <bit>
#include <limits>

#include "ir/aligned_list.hpp"
#include "ir/spirv_object_generated.h"

namespace kiln::spirv {
namespace {

// Limits far above what a kernel needs. They bound what a malicious file can make us allocate or evaluate.
constexpr std::size_t max_words = std::size_t{64} << 20;
constexpr std::int64_t max_grid = std::numeric_limits<std::int32_t>::max(), max_bytes = std::int64_t{1} << 40;

[[noreturn]] void damaged(const std::string& what) {
  throw error(error_kind::corrupted, "damaged amdgcnspirv object: " + what);
}

std::string text_of(const flatbuffers::String* stored) {
  if (!stored) return {};
  if (stored->size() > longest_text) damaged("a text is too long");
  return stored->str();
}

template <class T>
std::size_t bounded(const flatbuffers::Vector<T>* list) {
  if (!list) return 0;
  if (list->size() > longest_list) damaged("a list of " + std::to_string(list->size()) + " entries");
  return list->size();
}

std::vector<std::string> texts_of(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* stored) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < bounded(stored); ++i)
    result.push_back(text_of(stored->Get(static_cast<flatbuffers::uoffset_t>(i))));
  return result;
}

element_type number_type(std::uint8_t stored) {
  auto type = static_cast<element_type>(stored);
  if (type != element_type::i32 && type != element_type::i64 && type != element_type::f32 && type != element_type::f64)
    damaged("a parameter that is neither i32, i64, f32 nor f64");
  return type;
}

void check_launch(const kernel_launch& l) {
  bool fits = l.rule == launch_rule::per_element ? l.count.size() == 1 && l.block.size() <= 1
              : l.rule == launch_rule::per_row   ? l.count.size() == 1 && l.block.size() <= 1
              : l.rule == launch_rule::per_task  ? l.count.size() == 1 && l.block.size() == 1
                                                 : l.count.size() == 3 && l.block.size() == 3;
  if (!fits) damaged("launch of '" + l.symbol + "' has the wrong number of sizes");
  if (l.max_threads == 0 || l.max_threads > 1024)
    damaged("launch of '" + l.symbol + "' is bound to " + std::to_string(l.max_threads) + " threads");
}

std::uint64_t bits_of_real(const parameter& p, const expression_scope& scope) {
  double value = evaluate_real(p.expression, scope);
  return p.type == element_type::f32 ? std::bit_cast<std::uint32_t>(static_cast<float>(value))
                                     : std::bit_cast<std::uint64_t>(value);
}

std::uint64_t bits_of_integer(const parameter& p, std::int64_t value) {
  if (p.type == element_type::i32 &&
      (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::uint32_t>::max()))
    throw error(error_kind::invalid_model, "'" + p.expression + "' is " + std::to_string(value) +
                                               ", which does not fit the kernel's 32-bit parameter");
  return p.type == element_type::i32 ? static_cast<std::uint32_t>(value) : static_cast<std::uint64_t>(value);
}

}  // namespace

std::vector<std::byte> serialize(const object& o) {
  flatbuffers::FlatBufferBuilder b(o.words.size() + 4096);
  auto text = [&](const std::string& s) {
    if (s.size() > longest_text)
      throw error(error_kind::unsupported, o.name + ": a text of " + std::to_string(s.size()) +
                                               " characters; at most " + std::to_string(longest_text) + " are read");
    return b.CreateString(s);
  };
  auto fits = [&](std::size_t count) {
    if (count > longest_list)
      throw error(error_kind::unsupported, o.name + ": a list of " + std::to_string(count) + " entries; at most " +
                                               std::to_string(longest_list) + " are read");
  };
  for (std::size_t count : {o.restrictions.size(), o.requirements.size(), o.attributes.size(), o.results.size(),
                            o.scratch.size(), o.launches.size()})
    fits(count);
  for (const auto& [name, value] : o.attributes)
    if (const auto* sizes = std::get_if<std::vector<std::int64_t>>(&value)) fits(sizes->size());
  for (const auto& l : o.launches) fits(l.parameters.size());
  std::vector<flatbuffers::Offset<schema::Restriction>> restrictions;
  for (const auto& r : o.restrictions) restrictions.push_back(schema::CreateRestriction(b, r.input, text(r.type)));
  std::vector<flatbuffers::Offset<schema::Attribute>> attributes;
  for (const auto& [name, value] : o.attributes) {
    auto kind = static_cast<schema::AttributeKind>(value.index());
    auto stored_name = text(name);
    auto stored_text = text(value.index() == 2 ? std::get<2>(value) : "");
    flatbuffers::Offset<flatbuffers::Vector<std::int64_t>> list;  // absent if there is none
    if (const auto* sizes = std::get_if<std::vector<std::int64_t>>(&value)) list = b.CreateVector(*sizes);
    attributes.push_back(schema::CreateAttribute(b, stored_name, kind, value.index() == 0 ? std::get<0>(value) : 0,
                                                 value.index() == 1 ? std::get<1>(value) : 0.0, stored_text, list));
  }
  std::vector<flatbuffers::Offset<schema::Result>> results;
  for (const auto& r : o.results) {
    auto type = text(r.type), dims = text(r.dims);
    results.push_back(schema::CreateResult(b, type, dims));
  }
  std::vector<flatbuffers::Offset<schema::Launch>> launches;
  for (const auto& l : o.launches) {
    std::vector<flatbuffers::Offset<schema::Parameter>> parameters;
    for (const auto& p : l.parameters) {
      auto expression = text(p.expression);
      parameters.push_back(schema::CreateParameter(b, static_cast<std::uint8_t>(p.kind),
                                                   static_cast<std::uint8_t>(p.type), p.index, expression));
    }
    auto symbol = text(l.symbol);
    auto count = b.CreateVectorOfStrings(l.count), block = b.CreateVectorOfStrings(l.block);
    auto shared = text(l.shared_bytes);
    auto list = b.CreateVector(parameters);
    launches.push_back(
        schema::CreateLaunch(b, symbol, static_cast<std::uint8_t>(l.rule), count, block, shared, l.max_threads, list));
  }
  auto domain = text(o.domain), name = text(o.name);
  auto restriction_list = b.CreateVector(restrictions);
  auto requirements = b.CreateVectorOfStrings(o.requirements);
  auto attribute_list = b.CreateVector(attributes);
  auto result_list = b.CreateVector(results);
  auto scratch = b.CreateVectorOfStrings(o.scratch);
  auto launch_list = b.CreateVector(launches);
  b.ForceVectorAlignment(o.words.size(), 1, 16);
  auto words = b.CreateVector(reinterpret_cast<const std::uint8_t*>(o.words.data()), o.words.size());
  b.Finish(schema::CreateObject(b, domain, name, restriction_list, requirements, attribute_list, result_list, scratch,
                                launch_list, words),
           schema::ObjectIdentifier());
  const auto* begin = reinterpret_cast<const std::byte*>(b.GetBufferPointer());
  return {begin, begin + b.GetSize()};
}

object deserialize_object(std::span<const std::byte> bytes) {
  if (bytes.size() < 8 || bytes.size() > max_words) damaged("its size is invalid");
  std::vector<std::byte> aligned(bytes.begin(), bytes.end());  // a copy, because FlatBuffers needs aligned data
  const auto* data = reinterpret_cast<const std::uint8_t*>(aligned.data());
  flatbuffers::Verifier verifier(data, aligned.size(), 16, 1 << 16);
  if (!schema::ObjectBufferHasIdentifier(data) || !schema::VerifyObjectBuffer(verifier))
    damaged("its structure is invalid");
  const schema::Object& stored = *schema::GetObject(data);
  object o;
  o.domain = text_of(stored.domain());
  o.name = text_of(stored.name());
  for (flatbuffers::uoffset_t i = 0; i < bounded(stored.restrictions()); ++i)
    o.restrictions.push_back({stored.restrictions()->Get(i)->input(), text_of(stored.restrictions()->Get(i)->type())});
  o.requirements = texts_of(stored.requirements());
  for (flatbuffers::uoffset_t i = 0; i < bounded(stored.attributes()); ++i) {
    const schema::Attribute& a = *stored.attributes()->Get(i);
    attribute_value value = a.integer();
    if (a.kind() == schema::AttributeKind::real) value = a.real();
    else if (a.kind() == schema::AttributeKind::text) value = text_of(a.text());
    else if (a.kind() == schema::AttributeKind::list)
      value = bounded(a.list()) && aligned_count(a.list()) > 0
                  ? std::vector<std::int64_t>(a.list()->begin(), a.list()->end())
                  : std::vector<std::int64_t>{};
    else if (a.kind() != schema::AttributeKind::integer) damaged("an attribute of unknown kind");
    o.attributes.emplace_back(text_of(a.name()), std::move(value));
  }
  for (flatbuffers::uoffset_t i = 0; i < bounded(stored.results()); ++i)
    o.results.push_back({text_of(stored.results()->Get(i)->type()), text_of(stored.results()->Get(i)->dims())});
  o.scratch = texts_of(stored.scratch());
  for (flatbuffers::uoffset_t i = 0; i < bounded(stored.launches()); ++i) {
    const schema::Launch& l = *stored.launches()->Get(i);
    if (l.rule() > static_cast<std::uint8_t>(launch_rule::per_task)) damaged("an unknown launch rule");
    kernel_launch launch{text_of(l.symbol()),
                         static_cast<launch_rule>(l.rule()),
                         texts_of(l.count()),
                         texts_of(l.block()),
                         text_of(l.shared_bytes()),
                         l.max_threads(),
                         {}};
    check_launch(launch);
    for (flatbuffers::uoffset_t k = 0; k < bounded(l.parameters()); ++k) {
      const schema::Parameter& p = *l.parameters()->Get(k);
      if (p.kind() > static_cast<std::uint8_t>(parameter_kind::real)) damaged("a parameter of unknown kind");
      launch.parameters.push_back(
          {static_cast<parameter_kind>(p.kind()), p.index(), number_type(p.type()), text_of(p.expression())});
    }
    o.launches.push_back(std::move(launch));
  }
  if (const auto* words = stored.words()) {
    const auto* begin = reinterpret_cast<const std::byte*>(words->data());
    o.words.assign(begin, begin + words->size());
  }
  return o;
}

std::vector<shape> infer(const object& o, std::span<const shape> inputs) {
  std::vector<shape> outputs;
  for (const result_rule& r : o.results) {
    expression_scope scope{inputs, outputs, &o.attributes};
    shape result{evaluate_type(r.type, scope), evaluate_dims(r.dims, scope)};
    for (const dim& d : result.dims)
      if (d.is_static() && d.value() < 0)
        throw error(error_kind::invalid_model,
                    "the shape rule '" + r.dims + "' of " + o.name + " gives " + result.str());
    outputs.push_back(std::move(result));
  }
  return outputs;
}

namespace {

class resolver {
 public:
  resolver(const object& o, std::span<const shape> inputs, std::span<const shape> outputs, const resolve_limits& limits)
      : object_(o), scope_{inputs, outputs, &o.attributes, false, true}, limits_(limits) {}

  resolved_object all() {
    for (const std::string& bytes : object_.scratch) result_.scratch.push_back(size(bytes, max_bytes));
    for (const kernel_launch& l : object_.launches) add(l);
    return std::move(result_);
  }

 private:
  // A size that may be open; a number is checked.
  dim size(const std::string& text, std::int64_t most) const {
    const dim value = evaluate_integer(text, scope_);
    if (value.is_static() && (value.value() < 0 || value.value() > most))
      throw error(error_kind::invalid_model,
                  object_.name + ": '" + text + "' is " + value.str() + ", out of its range");
    return value;
  }

  std::int64_t known_size(const std::string& text, std::int64_t most) const {
    const dim value = size(text, most);
    if (!value.is_static())
      throw error(error_kind::unsupported, object_.name + ": '" + text + "' depends on the open dimension " +
                                               value.str() + ": give it a value with --dim");
    return value.value();
  }

  void add(const kernel_launch& l) {
    resolved_launch r{
        l.symbol, {1, 1, 1}, {1, 1, 1}, l.shared_bytes.empty() ? 0 : known_size(l.shared_bytes, max_bytes), {}};
    const std::int64_t most = std::min<std::int64_t>(l.max_threads, limits_.max_threads);
    set_sizes(l, most, r);
    const std::int64_t threads = r.block[0] * r.block[1] * r.block[2];
    if (threads < 1 || threads > most)
      throw error(error_kind::unsupported, object_.name + ": a workgroup of '" + l.symbol + "' has " +
                                               std::to_string(threads) + " threads, of at most " +
                                               std::to_string(most));
    const dim groups = r.grid[0] * r.grid[1] * r.grid[2];
    if (groups == dim(0)) return;
    if (!groups.is_static()) result_.bounded.push_back(groups);
    for (const parameter& p : l.parameters) r.arguments.push_back(argument(l, p));
    result_.launches.push_back(std::move(r));
  }

  void set_sizes(const kernel_launch& l, std::int64_t most, resolved_launch& r) const {
    const std::int64_t open = std::min(limits_.preferred_block, most);
    if (l.rule == launch_rule::per_tile) {
      for (std::size_t k = 0; k < 3; ++k)
        r.grid[k] = size(l.count[k], max_grid), r.block[k] = known_size(l.block[k], 1024);
    } else if (l.rule == launch_rule::per_row) {
      r.grid[0] = size(l.count[0], max_grid);
      r.block[0] = l.block.empty() ? open : known_size(l.block[0], 1024);
    } else if (l.rule == launch_rule::per_task) {
      r.grid[0] = size(l.count[0], max_grid);
      r.block[0] = limits_.lone_tasks ? 1 : known_size(l.block[0], 1024);
    } else {
      const dim elements = size(l.count[0], max_bytes);
      const std::int64_t each = l.block.empty() ? 1 : known_size(l.block[0], 1 << 20);
      if (each == 0)
        throw error(error_kind::invalid_model, object_.name + ": a thread of '" + l.symbol + "' has no elements");
      r.block[0] = open;
      r.grid[0] = (elements + dim(open * each - 1)) / dim(open * each);
      if (r.grid[0].is_static() && r.grid[0].value() > max_grid)
        throw error(error_kind::unsupported,
                    object_.name + ": " + elements.str() + " elements exceed the limit of one launch");
    }
  }

  resolved_argument argument(const kernel_launch& l, const parameter& p) {
    const std::size_t known = p.kind == parameter_kind::input    ? scope_.inputs.size()
                              : p.kind == parameter_kind::output ? scope_.outputs.size()
                                                                 : result_.scratch.size();
    resolved_argument a{p.kind, p.index, p.type, 0};
    if (p.kind == parameter_kind::real) {
      a.bits = bits_of_real(p, scope_);
    } else if (p.kind == parameter_kind::integer) {
      const dim value = evaluate_integer(p.expression, scope_);
      if (value.is_static()) a.bits = bits_of_integer(p, value.value());
      else a.open = value;
      if (a.open && p.type == element_type::i32) result_.bounded.push_back(value);
    } else if (p.index >= known) {
      throw error(error_kind::invalid_model, object_.name + ": a launch of '" + l.symbol + "' names buffer " +
                                                 std::to_string(p.index) + " of " + std::to_string(known));
    }
    return a;
  }

  const object& object_;
  expression_scope scope_;
  resolve_limits limits_;
  resolved_object result_;
};

}  // namespace

resolved_object resolve(const object& o, std::span<const shape> inputs, std::span<const shape> outputs,
                        const resolve_limits& limits) {
  return resolver(o, inputs, outputs, limits).all();
}

}  // namespace kiln::spirv
