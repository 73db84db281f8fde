// An immutable tensor value: a static shape and shared bytes. Cheap to copy and safe to share between threads. The
// bytes are on the heap or in a mapped file. Those of a file may be verified when they are first read: every function
// that reads them throws error{corrupted} if they are damaged.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ir/deferred_check.hpp"
#include "ir/hash.hpp"
#include "ir/shape.hpp"

namespace kiln {

class literal {
 public:
  literal() = default;
  // Takes dense row-major bytes; their size must equal type.bytes().
  literal(shape type, std::vector<std::byte> bytes);
  // Refers to bytes owned elsewhere (a mapped file). `owner` keeps them alive.
  literal(shape type, std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

  template <class T>
  static literal of(shape type, const std::vector<T>& values) {
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    return literal(std::move(type), std::move(bytes));
  }
  // Every element is `value`, rounded to the type. The bytes are stored densely.
  static literal filled(shape type, double value);
  static literal scalar(element_type type, double value) { return filled({type, {}}, value); }
  static literal from_int64(const std::vector<std::int64_t>& values);  // i64[n]
  static literal from_doubles(shape type, std::span<const double> values);

  const shape& type() const { return type_; }
  std::span<const std::byte> bytes() const {
    if (check_) check_->require();
    return bytes_;
  }
  // Where the bytes lie, without reading (and verifying) them.
  const std::byte* address() const { return bytes_.data(); }
  std::size_t byte_count() const { return bytes_.size(); }
  bool empty() const { return owner_ == nullptr; }
  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(bytes().data()), bytes_.size() / sizeof(T)};
  }
  // Element i, converted to double or int64. Too slow for inner loops.
  double at(std::int64_t i) const;
  std::int64_t at_int(std::int64_t i) const;
  std::vector<double> to_doubles() const;
  std::vector<std::int64_t> to_int64() const;
  // The common value of all elements, if they are all equal bit for bit (NaNs included). nullopt for empty tensors.
  std::optional<double> splat() const;
  literal reshaped(std::vector<dim> dims) const;  // shares the bytes; the element count must match
  content_hash hash() const;                      // over type, dims and bytes
  // Tells contents apart like hash(), but reads no bytes if their hash is known. Equal contents of another origin have
  // another identity.
  content_hash identity() const;
  // The same literal, of whose bytes the caller knows a hash. The hash has been verified, or `check` verifies it when
  // the bytes are first read.
  literal identified(const content_hash& known, std::shared_ptr<deferred_check> check = nullptr) const;
  friend bool operator==(const literal& a, const literal& b);  // bitwise

 private:
  shape type_;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> owner_;
  std::optional<content_hash> known_hash_;
  std::shared_ptr<deferred_check> check_;
};

// Element access on raw dense storage, for loaders and the reference implementations.
double load_element(element_type type, const std::byte* data, std::int64_t index);
std::int64_t load_integer(element_type type, const std::byte* data, std::int64_t index);
void store_element(element_type type, std::byte* data, std::int64_t index, double value);  // rounds; integers wrap
void store_integer(element_type type, std::byte* data, std::int64_t index, std::int64_t value);

}  // namespace kiln
