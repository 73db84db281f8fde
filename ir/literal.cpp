#include "ir/literal.hpp"

#include <algorithm>
#include <cmath>

#include "ir/error.hpp"

namespace kiln {
namespace {

template <class T>
T read(const std::byte* data, std::int64_t index) {
  T value;
  std::memcpy(&value, data + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <class T>
void write(std::byte* data, std::int64_t index, T value) {
  std::memcpy(data + index * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

// Elements of 2 or 4 bits, packed into bytes from the low bits up.
template <int Bits>
unsigned read_packed(const std::byte* data, std::int64_t index) {
  constexpr std::int64_t per_byte = 8 / Bits;
  return static_cast<unsigned>(data[index / per_byte]) >> (Bits * (index % per_byte)) & ((1u << Bits) - 1);
}

template <int Bits>
void write_packed(std::byte* data, std::int64_t index, unsigned value) {
  constexpr std::int64_t per_byte = 8 / Bits;
  constexpr unsigned mask = (1u << Bits) - 1;
  unsigned shift = static_cast<unsigned>(Bits * (index % per_byte)),
           old = static_cast<unsigned>(data[index / per_byte]);
  data[index / per_byte] = static_cast<std::byte>((old & ~(mask << shift)) | (value & mask) << shift);
}

// Values outside int64 saturate; NaN becomes 0.
std::int64_t to_integer(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 9223372036854775808.0) return INT64_MAX;
  if (value <= -9223372036854775808.0) return INT64_MIN;
  return static_cast<std::int64_t>(value);
}

}  // namespace

double load_element(element_type type, const std::byte* data, std::int64_t index) {
  switch (type) {
    case element_type::f64: return read<double>(data, index);
    case element_type::f32: return read<float>(data, index);
    case element_type::f16: return f16_to_f32(read<std::uint16_t>(data, index));
    case element_type::bf16: return bf16_to_f32(read<std::uint16_t>(data, index));
    case element_type::f8e4m3: return f8e4m3_to_f32(read<std::uint8_t>(data, index));
    case element_type::f8e5m2: return f8e5m2_to_f32(read<std::uint8_t>(data, index));
    case element_type::f8e4m3fnuz: return f8e4m3fnuz_to_f32(read<std::uint8_t>(data, index));
    case element_type::f8e5m2fnuz: return f8e5m2fnuz_to_f32(read<std::uint8_t>(data, index));
    case element_type::f8e8m0: return f8e8m0_to_f32(read<std::uint8_t>(data, index));
    case element_type::f4e2m1: return f4e2m1_to_f32(static_cast<std::uint8_t>(read_packed<4>(data, index)));
    case element_type::u64: return static_cast<double>(read<std::uint64_t>(data, index));
    default: return static_cast<double>(load_integer(type, data, index));
  }
}

std::int64_t load_integer(element_type type, const std::byte* data, std::int64_t index) {
  switch (type) {
    case element_type::i64:
    case element_type::u64: return read<std::int64_t>(data, index);
    case element_type::i32: return read<std::int32_t>(data, index);
    case element_type::u32: return read<std::uint32_t>(data, index);
    case element_type::i16: return read<std::int16_t>(data, index);
    case element_type::u16: return read<std::uint16_t>(data, index);
    case element_type::i8: return read<std::int8_t>(data, index);
    case element_type::u8: return read<std::uint8_t>(data, index);
    case element_type::boolean: return read<std::uint8_t>(data, index) != 0;
    case element_type::u4: return read_packed<4>(data, index);
    case element_type::i4: return static_cast<std::int64_t>(read_packed<4>(data, index) ^ 8u) - 8;
    case element_type::u2: return read_packed<2>(data, index);
    case element_type::i2: return static_cast<std::int64_t>(read_packed<2>(data, index) ^ 2u) - 2;
    default: return to_integer(load_element(type, data, index));
  }
}

void store_element(element_type type, std::byte* data, std::int64_t index, double value) {
  switch (type) {
    case element_type::f64: return write(data, index, value);
    case element_type::f32: return write(data, index, static_cast<float>(value));
    case element_type::f16: return write(data, index, f32_to_f16(static_cast<float>(value)));
    case element_type::bf16: return write(data, index, f32_to_bf16(static_cast<float>(value)));
    case element_type::f8e4m3: return write(data, index, f32_to_f8e4m3(static_cast<float>(value)));
    case element_type::f8e5m2: return write(data, index, f32_to_f8e5m2(static_cast<float>(value)));
    case element_type::f8e4m3fnuz: return write(data, index, f32_to_f8e4m3fnuz(static_cast<float>(value)));
    case element_type::f8e5m2fnuz: return write(data, index, f32_to_f8e5m2fnuz(static_cast<float>(value)));
    case element_type::f8e8m0: return write(data, index, f32_to_f8e8m0(static_cast<float>(value)));
    case element_type::f4e2m1: return write_packed<4>(data, index, f32_to_f4e2m1(static_cast<float>(value)));
    case element_type::boolean: return write(data, index, static_cast<std::uint8_t>(value != 0));
    case element_type::u64:
      if (value >= 9223372036854775808.0)
        return write(data, index, value >= 18446744073709551616.0 ? UINT64_MAX : static_cast<std::uint64_t>(value));
      [[fallthrough]];
    default: return store_integer(type, data, index, to_integer(value));
  }
}

void store_integer(element_type type, std::byte* data, std::int64_t index, std::int64_t value) {
  switch (type) {
    case element_type::i64:
    case element_type::u64: return write(data, index, value);
    case element_type::i32:
    case element_type::u32: return write(data, index, static_cast<std::int32_t>(value));
    case element_type::i16:
    case element_type::u16: return write(data, index, static_cast<std::int16_t>(value));
    case element_type::i8:
    case element_type::u8: return write(data, index, static_cast<std::int8_t>(value));
    case element_type::boolean: return write(data, index, static_cast<std::uint8_t>(value != 0));
    case element_type::i4:
    case element_type::u4: return write_packed<4>(data, index, static_cast<unsigned>(value));
    case element_type::i2:
    case element_type::u2: return write_packed<2>(data, index, static_cast<unsigned>(value));
    default: return store_element(type, data, index, static_cast<double>(value));
  }
}

literal::literal(shape type, std::vector<std::byte> bytes) : type_(std::move(type)) {
  auto owned = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  bytes_ = *owned;
  owner_ = std::move(owned);
  if (bytes_.size() != type_.bytes())
    throw error(error_kind::invalid_model, type_.str() + " needs " + std::to_string(type_.bytes()) + " bytes, " +
                                               std::to_string(bytes_.size()) + " were given");
}

literal::literal(shape type, std::span<const std::byte> bytes, std::shared_ptr<const void> owner)
    : type_(std::move(type)), bytes_(bytes), owner_(std::move(owner)) {
  if (bytes_.size() != type_.bytes())
    throw error(error_kind::invalid_model, type_.str() + " needs " + std::to_string(type_.bytes()) + " bytes, " +
                                               std::to_string(bytes_.size()) + " were given");
}

literal literal::filled(shape type, double value) {
  std::vector<std::byte> bytes(type.bytes());
  for (std::int64_t i = 0, n = type.element_count(); i < n; ++i) store_element(type.type, bytes.data(), i, value);
  return literal(std::move(type), std::move(bytes));
}

literal literal::from_int64(const std::vector<std::int64_t>& values) {
  return of(shape{element_type::i64, {static_cast<std::int64_t>(values.size())}}, values);
}

literal literal::from_doubles(shape type, std::span<const double> values) {
  std::vector<std::byte> bytes(type.bytes());
  for (std::size_t i = 0; i < values.size(); ++i)
    store_element(type.type, bytes.data(), static_cast<std::int64_t>(i), values[i]);
  return literal(std::move(type), std::move(bytes));
}

double literal::at(std::int64_t i) const { return load_element(type_.type, bytes().data(), i); }
std::int64_t literal::at_int(std::int64_t i) const { return load_integer(type_.type, bytes().data(), i); }

std::vector<double> literal::to_doubles() const {
  std::vector<double> values(static_cast<std::size_t>(type_.element_count()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = at(static_cast<std::int64_t>(i));
  return values;
}

std::vector<std::int64_t> literal::to_int64() const {
  std::vector<std::int64_t> values(static_cast<std::size_t>(type_.element_count()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = at_int(static_cast<std::int64_t>(i));
  return values;
}

std::optional<double> literal::splat() const {
  if (empty() || type_.element_count() == 0) return std::nullopt;
  auto width = static_cast<std::size_t>(storage_bits(type_.type));
  if (width < 8) {
    for (std::int64_t i = 1, n = type_.element_count(); i < n; ++i)
      if (at_int(i) != at_int(0)) return std::nullopt;
  } else if (const auto all = bytes();
             all.size() > width / 8 && std::memcmp(all.data(), all.data() + width / 8, all.size() - width / 8) != 0) {
    return std::nullopt;
  }
  return at(0);
}

literal literal::reshaped(std::vector<dim> dims) const {
  literal result(shape{type_.type, std::move(dims)}, bytes_, owner_);
  result.known_hash_ = known_hash_;
  result.check_ = check_;
  return result;
}

content_hash literal::hash() const { return field_hasher().add(type_.str()).add(bytes()).finish(); }

content_hash literal::identity() const {
  if (!known_hash_) return hash();
  return field_hasher().add("verified").add(type_.str()).add(*known_hash_).finish();
}

literal literal::identified(const content_hash& known, std::shared_ptr<deferred_check> check) const {
  literal result = *this;
  result.known_hash_ = known;
  result.check_ = std::move(check);
  return result;
}

bool operator==(const literal& a, const literal& b) {
  return a.type_ == b.type_ && (a.bytes_.data() == b.bytes_.data() || std::ranges::equal(a.bytes(), b.bytes()));
}

}  // namespace kiln
