// A type-erased operation: any struct with a name, a reflection of its fields, a shape rule and a reference
// implementation. A value; copies share one immutable object, so an operation may be used from any thread.
//
// An operation struct `Op` (see ir/ops/) provides
//   // "dot"; unique. An elementwise operation has the name of its function.
//   std::string_view name() const;
//   // Calls f("axis", self.axis) and so on, for every field.
//   template <class Self, class F> static void reflect(Self& self, F f);
//   // Throws error{invalid_model}.
//   std::vector<shape> infer(std::span<const shape> inputs) const;
//   // The reference: plain C++ with f64/f32 accumulation, slow and correct.
//   std::vector<literal> evaluate(std::span<const literal> inputs) const;
// The type of a field is bool, int64_t, double, std::string, element_type, an enum with an enum_table (see
// ir/enum_names.hpp), or a vector of int64_t, double, std::string or dim.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ir/attribute.hpp"
#include "ir/enum_names.hpp"
#include "ir/literal.hpp"
#include "ir/shape.hpp"

namespace kiln {

namespace detail {

template <class Field>
attribute to_attribute(const Field& field) {
  if constexpr (std::is_enum_v<Field> && !std::is_same_v<Field, element_type>) return std::string(enum_name(field));
  else return field;
}

// Throws error{corrupted}: the attribute has the wrong type, or its text is not a name of the enum.
[[noreturn]] void bad_attribute(std::string_view name, const attribute& value);
template <class Field>
void from_attribute(std::string_view name, const attribute& value, Field& field) {
  if constexpr (std::is_enum_v<Field> && !std::is_same_v<Field, element_type>) {
    const auto* text = std::get_if<std::string>(&value);
    if (!text || !parse_enum(*text, field)) bad_attribute(name, value);
  } else {
    const auto* typed = std::get_if<Field>(&value);
    if (!typed) bad_attribute(name, value);
    field = *typed;
  }
}

}  // namespace detail

template <class Op>
attribute_list attributes_of(const Op& op) {
  attribute_list list;
  Op::reflect(op,
              [&](std::string_view name, const auto& field) { list.emplace_back(name, detail::to_attribute(field)); });
  return list;
}

// Identifies T by a number: FNV-1a of its name. The libraries of a process that exchange operations agree on it, while
// each of them may have its own copy of a variable.
template <class T>
constexpr std::uint64_t type_number() {
  std::uint64_t number = 14695981039346656037u;
  for (char c : std::string_view(__PRETTY_FUNCTION__))
    number = (number ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return number;
}

class operation {
 public:
  operation() = default;
  template <class Op>
    requires(!std::is_same_v<std::remove_cvref_t<Op>, operation>)
  operation(Op op) : self_(std::make_shared<const model<Op>>(std::move(op))) {}

  std::string_view name() const { return self_->name(); }
  attribute_list attributes() const { return self_->attributes(); }
  std::vector<shape> infer(std::span<const shape> inputs) const { return self_->infer(inputs); }
  std::vector<literal> evaluate(std::span<const literal> inputs) const { return self_->evaluate(inputs); }
  // Returns the same operation with symbols replaced in every field that holds dims.
  operation substitute(const dim_bindings& bindings) const;

  template <class Op>
  const Op* get_if() const {
    return self_ && self_->tag() == type_tag<Op> ? &static_cast<const model<Op>*>(self_.get())->op : nullptr;
  }
  template <class Op>
  bool is() const {
    return get_if<Op>() != nullptr;
  }

  std::string str() const;  // "dot{transpose_b=true}"
  friend bool operator==(const operation& a, const operation& b) {
    return a.name() == b.name() && a.attributes() == b.attributes();
  }

 private:
  template <class Op>
  static constexpr std::uint64_t type_tag = type_number<Op>();
  struct interface {
    virtual ~interface() = default;
    // Comparing numbers is cheaper than dynamic_cast, which compares names.
    virtual std::uint64_t tag() const = 0;
    virtual std::string_view name() const = 0;
    virtual attribute_list attributes() const = 0;
    virtual std::vector<shape> infer(std::span<const shape>) const = 0;
    virtual std::vector<literal> evaluate(std::span<const literal>) const = 0;
  };
  template <class Op>
  struct model final : interface {
    explicit model(Op o) : op(std::move(o)) {}
    std::uint64_t tag() const override { return type_tag<Op>; }
    std::string_view name() const override { return op.name(); }
    attribute_list attributes() const override { return attributes_of(op); }
    std::vector<shape> infer(std::span<const shape> inputs) const override { return op.infer(inputs); }
    std::vector<literal> evaluate(std::span<const literal> inputs) const override { return op.evaluate(inputs); }
    Op op;
  };
  std::shared_ptr<const interface> self_;
};

// Makes the operation called `name` with these attributes. A missing attribute keeps its default, so that older files
// without a newer field can be read. Throws error{unsupported} for an unknown name or attribute, error{corrupted} for a
// value of the wrong type.
operation make_operation(std::string_view name, const attribute_list& attributes);

// Every name that make_operation knows, sorted.
std::vector<std::string_view> operation_names();

}  // namespace kiln
