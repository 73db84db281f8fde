#include "mlir_bridge/codegen/code_builder.hpp"

#include <algorithm>

#include "ir/error.hpp"
#include "mlir_bridge/codegen/int4.hpp"
#include "mlir_bridge/codegen/small_floats.hpp"

namespace kiln::codegen {

namespace {

enum opcode : int { op_add, op_sub, op_mul, op_div, op_rem, op_min, op_max };

std::optional<std::int64_t> fold(int opcode, std::int64_t a, std::int64_t b) {
  switch (opcode) {
    case op_add: return a + b;
    case op_sub: return a - b;
    case op_mul: return a * b;
    case op_div: return b ? std::optional(a / b) : std::nullopt;
    case op_rem: return b ? std::optional(a % b) : std::nullopt;
    case op_min: return std::min(a, b);
    default: return std::max(a, b);
  }
}

}  // namespace

// --- types

mlir::Type code_builder::scalar_type(element_type type) {
  switch (type) {
    case element_type::f64: return builder.getF64Type();
    case element_type::f32:
    case element_type::f16:
    case element_type::bf16: return builder.getF32Type();
    case element_type::i64:
    case element_type::u64: return builder.getI64Type();
    case element_type::i32:
    case element_type::u32: return builder.getI32Type();
    case element_type::i16:
    case element_type::u16: return builder.getIntegerType(16);
    case element_type::i8:
    case element_type::u8: return builder.getIntegerType(8);
    case element_type::boolean: return builder.getI1Type();
    case element_type::i4:
    case element_type::u4:
    case element_type::f4e2m1: return builder.getIntegerType(4);
    case element_type::i2:
    case element_type::u2: return builder.getIntegerType(2);
    case element_type::f8e4m3:
    case element_type::f8e5m2:
    case element_type::f8e4m3fnuz:
    case element_type::f8e5m2fnuz:
    case element_type::f8e8m0: return builder.getF32Type();
  }
  throw error(error_kind::internal, "an element type without a type in code_builder.cpp");
}

mlir::Type code_builder::storage_type(element_type type) {
  switch (type) {
    case element_type::f16: return builder.getF16Type();
    case element_type::bf16: return on.llvm_bf16 ? mlir::Type(builder.getBF16Type()) : builder.getIntegerType(16);
    case element_type::boolean: return builder.getIntegerType(8);
    default:
      if (is_packed(type)) refuse_packed(*this, type);
      return is_small_float(type) ? mlir::Type(builder.getIntegerType(8)) : scalar_type(type);
  }
}

mlir::Type code_builder::with_lanes(mlir::Type scalar, std::int64_t lanes) {
  return lanes == 1 ? scalar : mlir::Type(mlir::VectorType::get({lanes}, scalar));
}
mlir::Type code_builder::type(element_type t, std::int64_t lanes) { return with_lanes(scalar_type(t), lanes); }

std::int64_t code_builder::lanes_of(Value v) {
  auto vector = mlir::dyn_cast<mlir::VectorType>(v.getType());
  return vector ? vector.getNumElements() : 1;
}

mlir::Type code_builder::scalar_of(Value v) { return mlir::getElementTypeOrSelf(v.getType()); }

// --- constants

Value code_builder::constant(std::int64_t v) { return integer(index_type(), v); }

Value code_builder::to_index(Value integer) {
  mlir::Type type = with_lanes(index_type(), lanes_of(integer));
  unsigned from = scalar_of(integer).getIntOrFloatBitWidth(), to = static_cast<unsigned>(on.index_bits);
  if (from == to) return integer;
  return from > to ? make<mlir::arith::TruncIOp>(type, integer).getResult()
                   : make<mlir::arith::ExtSIOp>(type, integer).getResult();
}

Value code_builder::integer(mlir::Type type, std::int64_t v) {
  auto& cached = constants_[{const_cast<void*>(type.getAsOpaquePointer()), v}];
  if (cached) return cached;
  // Insert at the entry of the function, where the constant dominates every use.
  mlir::OpBuilder::InsertionGuard guard(builder);
  mlir::Operation* function = builder.getInsertionBlock()->getParentOp();
  while (!mlir::isa<mlir::func::FuncOp>(function)) function = function->getParentOp();
  builder.setInsertionPointToStart(&mlir::cast<mlir::func::FuncOp>(function).getBody().front());
  mlir::Type scalar = mlir::getElementTypeOrSelf(type);
  mlir::TypedAttr attribute = builder.getIntegerAttr(
      scalar, llvm::APInt(scalar.getIntOrFloatBitWidth(), static_cast<std::uint64_t>(v), true, true));
  if (auto vector = mlir::dyn_cast<mlir::VectorType>(type))
    attribute = mlir::DenseElementsAttr::get(vector, mlir::Attribute(attribute));
  return cached = make<mlir::arith::ConstantOp>(attribute);
}

Value code_builder::number(mlir::Type type, double v) {
  mlir::Type scalar = mlir::getElementTypeOrSelf(type);
  if (!mlir::isa<mlir::FloatType>(scalar)) return integer(type, static_cast<std::int64_t>(v));
  mlir::TypedAttr attribute = builder.getFloatAttr(scalar, v);
  if (auto vector = mlir::dyn_cast<mlir::VectorType>(type))
    attribute = mlir::DenseElementsAttr::get(vector, mlir::Attribute(attribute));
  return make<mlir::arith::ConstantOp>(attribute);
}

Value code_builder::lane_numbers(std::int64_t lanes) {
  if (lanes == 1) return constant(0);
  llvm::SmallVector<llvm::APInt> numbers;
  for (std::int64_t i = 0; i < lanes; ++i)
    numbers.emplace_back(static_cast<unsigned>(on.index_bits), static_cast<std::uint64_t>(i));
  return make<mlir::arith::ConstantOp>(
      mlir::DenseElementsAttr::get(mlir::VectorType::get({lanes}, index_type()), numbers));
}

std::optional<std::int64_t> code_builder::known(Value v) {
  auto constant = v.getDefiningOp<mlir::arith::ConstantOp>();
  if (!constant) return std::nullopt;
  if (auto attribute = mlir::dyn_cast<mlir::IntegerAttr>(constant.getValue()))
    return attribute.getValue().getSExtValue();
  if (auto dense = mlir::dyn_cast<mlir::DenseElementsAttr>(constant.getValue());
      dense && dense.isSplat() && dense.getElementType().isInteger())
    return dense.getSplatValue<llvm::APInt>().getSExtValue();
  return std::nullopt;
}

// --- integer arithmetic

template <class Op>
Value code_builder::arithmetic(int opcode, Value a, Value b) {
  // A scalar operand of a vector operation is splatted.
  if (lanes_of(a) != lanes_of(b)) {
    if (lanes_of(a) == 1) a = splat(a, lanes_of(b));
    else b = splat(b, lanes_of(a));
  }
  auto ka = known(a), kb = known(b);
  if (ka && kb)
    if (auto folded = fold(opcode, *ka, *kb)) return integer(a.getType(), *folded);
  if (kb && *kb == 0 && (opcode == op_add || opcode == op_sub)) return a;
  if (ka && *ka == 0 && opcode == op_add) return b;
  if (opcode == op_mul && ((ka && *ka == 0) || (kb && *kb == 0))) return integer(a.getType(), 0);
  if (kb && *kb == 1 && (opcode == op_mul || opcode == op_div)) return a;
  if (ka && *ka == 1 && opcode == op_mul) return b;
  if (kb && *kb == 1 && opcode == op_rem) return integer(a.getType(), 0);
  if (ka && *ka == 0 && (opcode == op_div || opcode == op_rem)) return a;
  if ((opcode == op_min || opcode == op_max) && a == b) return a;
  auto& cached = known_[{opcode, a.getAsOpaquePointer(), b.getAsOpaquePointer()}];
  if (!cached) cached = make<Op>(a, b);
  return cached;
}

Value code_builder::add(Value a, Value b) { return arithmetic<mlir::arith::AddIOp>(op_add, a, b); }
Value code_builder::sub(Value a, Value b) { return arithmetic<mlir::arith::SubIOp>(op_sub, a, b); }
Value code_builder::mul(Value a, Value b) { return arithmetic<mlir::arith::MulIOp>(op_mul, a, b); }
Value code_builder::div(Value a, Value b) { return arithmetic<mlir::arith::DivUIOp>(op_div, a, b); }
Value code_builder::rem(Value a, Value b) { return arithmetic<mlir::arith::RemUIOp>(op_rem, a, b); }
Value code_builder::min(Value a, Value b) { return arithmetic<mlir::arith::MinSIOp>(op_min, a, b); }
Value code_builder::max(Value a, Value b) { return arithmetic<mlir::arith::MaxSIOp>(op_max, a, b); }
Value code_builder::less(Value a, Value b) { return make<mlir::arith::CmpIOp>(mlir::arith::CmpIPredicate::slt, a, b); }
Value code_builder::equal(Value a, Value b) { return make<mlir::arith::CmpIOp>(mlir::arith::CmpIPredicate::eq, a, b); }
Value code_builder::select(Value condition, Value a, Value b) { return make<mlir::arith::SelectOp>(condition, a, b); }

std::pair<Value, std::int64_t> code_builder::split_sum(Value v) {
  if (auto k = known(v)) return {{}, *k};
  auto sum = v.getDefiningOp<mlir::arith::AddIOp>();
  auto k = sum ? known(sum.getRhs()) : std::nullopt;
  if (!k) return {v, 0};
  auto [rest, more] = split_sum(sum.getLhs());
  return {rest, more + *k};
}

values code_builder::delinearize(Value linear, std::span<const std::int64_t> dims) {
  values digits(dims.size());
  for (std::size_t i = dims.size(); i-- > 0;) {
    // The linear index is in range, so the first digit needs no remainder.
    digits[i] = i == 0 ? linear : rem(linear, dims[i]);
    if (i) linear = div(linear, dims[i]);
  }
  return digits;
}

Value code_builder::linearize(std::span<const Value> indices, std::span<const std::int64_t> dims) {
  Value linear = constant(0);
  for (std::size_t i = 0; i < dims.size(); ++i) linear = add(mul(linear, dims[i]), indices[i]);
  return linear;
}

// --- vectors

Value code_builder::splat(Value scalar, std::int64_t lanes) {
  if (lanes == 1) return scalar;
  mlir::Type type = with_lanes(scalar.getType(), lanes);
  if (scalar.getType().isInteger())
    if (auto k = known(scalar)) return integer(type, *k);
  return make<mlir::vector::BroadcastOp>(type, scalar);
}

Value code_builder::lane(Value vector, std::int64_t i) {
  if (lanes_of(vector) == 1) return vector;
  return make<mlir::vector::ExtractOp>(vector, i);
}

Value code_builder::from_lanes(std::span<const Value> scalars) {
  if (scalars.size() == 1) return scalars[0];
  mlir::Type type = with_lanes(scalars[0].getType(), static_cast<std::int64_t>(scalars.size()));
  return make<mlir::vector::FromElementsOp>(type,
                                            mlir::ValueRange(llvm::ArrayRef<Value>(scalars.data(), scalars.size())));
}

Value code_builder::horizontal(mlir::vector::CombiningKind kind, Value vector) {
  if (lanes_of(vector) == 1) return vector;
  return make<mlir::vector::ReductionOp>(kind, vector, mlir::arith::FastMathFlags::reassoc);
}

Value code_builder::fma(Value a, Value b, Value c) { return make<mlir::math::FmaOp>(a, b, c); }

// --- control

values code_builder::loop(Value low, Value high, std::int64_t step, values carried, const loop_body& body) {
  auto kl = known(low), kh = known(high);
  if (kl && kh && *kl >= *kh) return carried;
  if (kl && kh && *kh - *kl <= step) return body(low, carried);
  auto for_op = make<mlir::scf::ForOp>(low, high, constant(step), mlir::ValueRange(llvm::ArrayRef<Value>(carried)));
  {
    mlir::OpBuilder::InsertionGuard guard(builder);
    scope names(*this);
    mlir::Block* block = for_op.getBody();
    if (carried.empty()) block->getTerminator()->erase();
    builder.setInsertionPointToEnd(block);
    values arguments(for_op.getRegionIterArgs().begin(), for_op.getRegionIterArgs().end());
    values results = body(for_op.getInductionVar(), arguments);
    make<mlir::scf::YieldOp>(mlir::ValueRange(llvm::ArrayRef<Value>(results)));
  }
  return values(for_op.getResults().begin(), for_op.getResults().end());
}

void code_builder::loop(Value low, Value high, std::int64_t step, const std::function<void(Value)>& body) {
  loop(low, high, step, values{}, [&](Value i, std::span<const Value>) {
    body(i);
    return values{};
  });
}

void code_builder::loop(std::int64_t low, std::int64_t high, std::int64_t step,
                        const std::function<void(Value)>& body) {
  loop(constant(low), constant(high), step, body);
}

values code_builder::loop(std::int64_t low, std::int64_t high, std::int64_t step, values carried,
                          const loop_body& body) {
  return loop(constant(low), constant(high), step, std::move(carried), body);
}

values code_builder::branch(Value condition, const std::function<values()>& then,
                            const std::function<values()>& otherwise) {
  // The result types are known only after the bodies have been emitted: emit both, then build the final operation
  // around them.
  const std::function<values()>* bodies[2] = {&then, &otherwise};
  values results;
  auto probe = make<mlir::scf::IfOp>(mlir::TypeRange{}, condition, /*withElse=*/true);
  for (int side = 0; side < 2; ++side) {
    mlir::OpBuilder::InsertionGuard guard(builder);
    scope names(*this);
    mlir::Block* block = side == 0 ? probe.thenBlock() : probe.elseBlock();
    block->getTerminator()->erase();
    builder.setInsertionPointToEnd(block);
    results = (*bodies[side])();
    make<mlir::scf::YieldOp>(mlir::ValueRange(llvm::ArrayRef<Value>(results)));
  }
  if (results.empty()) return {};
  llvm::SmallVector<mlir::Type> types;
  for (Value v : results) types.push_back(v.getType());
  auto final_op = make<mlir::scf::IfOp>(types, condition, /*addThenBlock=*/false, /*addElseBlock=*/false);
  final_op.getThenRegion().takeBody(probe.getThenRegion());
  final_op.getElseRegion().takeBody(probe.getElseRegion());
  probe.erase();
  return values(final_op.getResults().begin(), final_op.getResults().end());
}

void code_builder::when(Value condition, const std::function<void()>& then) {
  auto if_op = make<mlir::scf::IfOp>(condition, /*withElse=*/false);
  mlir::OpBuilder::InsertionGuard guard(builder);
  scope names(*this);
  builder.setInsertionPointToStart(if_op.thenBlock());
  then();
}

// --- memory

namespace {

unsigned storage_alignment(element_type type) { return static_cast<unsigned>(std::max(1, storage_bits(type) / 8)); }

// Returns the alignment in bytes of an access at a multiple of `multiple` elements.
unsigned access_alignment(const codegen_target& on, element_type type, std::int64_t multiple) {
  std::int64_t power = multiple & -multiple;
  return static_cast<unsigned>(std::max<std::int64_t>(
      storage_alignment(type), std::min<std::int64_t>(on.buffer_alignment, power * storage_alignment(type))));
}

}  // namespace

Value code_builder::address(Value pointer, Value offset, element_type type) {
  if (is_packed(type)) refuse_packed(*this, type);
  if (known(offset) == std::int64_t{0}) return pointer;
  if (on.index_bits < 64 &&
      mlir::cast<mlir::LLVM::LLVMPointerType>(pointer.getType()).getAddressSpace() == on.global_space) {
    // All GPUs have an addressing mode with a uniform 64-bit base and a 32-bit byte offset.
    Value bytes = make<mlir::arith::ExtUIOp>(builder.getI64Type(), mul(offset, storage_alignment(type)));
    return make<mlir::LLVM::GEPOp>(pointer.getType(), builder.getI8Type(), pointer,
                                   llvm::ArrayRef<mlir::LLVM::GEPArg>{mlir::LLVM::GEPArg(bytes)},
                                   mlir::LLVM::GEPNoWrapFlags::inbounds);
  }
  return make<mlir::LLVM::GEPOp>(pointer.getType(), storage_type(type), pointer,
                                 llvm::ArrayRef<mlir::LLVM::GEPArg>{mlir::LLVM::GEPArg(offset)},
                                 mlir::LLVM::GEPNoWrapFlags::inbounds);
}

void code_builder::prefetch(Value pointer, Value offset, element_type type, unsigned cache_level, bool written) {
  const Value at = make<mlir::LLVM::GEPOp>(pointer.getType(), storage_type(type), pointer,
                                           llvm::ArrayRef<mlir::LLVM::GEPArg>{mlir::LLVM::GEPArg(offset)});
  make<mlir::LLVM::Prefetch>(at, written, 4 - cache_level, 1u);
}

Value code_builder::to_compute(Value stored, element_type type) {
  std::int64_t lanes = lanes_of(stored);
  switch (type) {
    case element_type::f16: return make<mlir::arith::ExtFOp>(with_lanes(builder.getF32Type(), lanes), stored);
    case element_type::bf16: {
      if (on.llvm_bf16) return make<mlir::arith::ExtFOp>(with_lanes(builder.getF32Type(), lanes), stored);
      mlir::Type i32 = with_lanes(builder.getI32Type(), lanes);
      Value wide = make<mlir::arith::ExtUIOp>(i32, stored);
      return make<mlir::arith::BitcastOp>(with_lanes(builder.getF32Type(), lanes),
                                          make<mlir::arith::ShLIOp>(wide, integer(i32, 16)).getResult());
    }
    case element_type::boolean:
      return make<mlir::arith::CmpIOp>(mlir::arith::CmpIPredicate::ne, stored, integer(stored.getType(), 0));
    default: return is_small_float(type) ? small_float_to_f32(*this, stored, type) : stored;
  }
}

Value code_builder::to_storage(Value computed, element_type type) {
  std::int64_t lanes = lanes_of(computed);
  switch (type) {
    case element_type::f16: return make<mlir::arith::TruncFOp>(with_lanes(builder.getF16Type(), lanes), computed);
    case element_type::bf16: {
      if (on.llvm_bf16) return make<mlir::arith::TruncFOp>(with_lanes(builder.getBF16Type(), lanes), computed);
      // Rounds to nearest even with integer arithmetic on the bits. A NaN keeps its upper bits and becomes quiet.
      mlir::Type i32 = with_lanes(builder.getI32Type(), lanes);
      Value bits = make<mlir::arith::BitcastOp>(i32, computed);
      Value high = make<mlir::arith::ShRUIOp>(bits, integer(i32, 16));
      Value odd = make<mlir::arith::AndIOp>(high, integer(i32, 1));
      Value rounded = make<mlir::arith::AddIOp>(make<mlir::arith::AddIOp>(bits, odd).getResult(), integer(i32, 0x7fff));
      rounded = make<mlir::arith::ShRUIOp>(rounded, integer(i32, 16));
      Value nan = make<mlir::arith::CmpFOp>(mlir::arith::CmpFPredicate::UNO, computed, computed);
      Value quiet = make<mlir::arith::OrIOp>(high, integer(i32, 0x40));
      return make<mlir::arith::TruncIOp>(with_lanes(builder.getIntegerType(16), lanes), select(nan, quiet, rounded));
    }
    case element_type::boolean:
      return make<mlir::arith::ExtUIOp>(with_lanes(builder.getIntegerType(8), lanes), computed);
    default:
      if (is_packed(type)) refuse_packed(*this, type);
      // The code of a packed element, which kernel_emitter::output gives a byte of its own.
      if (type == element_type::u8 && scalar_of(computed).getIntOrFloatBitWidth() < 8)
        return make<mlir::arith::ExtUIOp>(with_lanes(builder.getI8Type(), lanes), computed);
      return is_small_float(type) ? f32_to_small_float(*this, computed, type) : computed;
  }
}

Value code_builder::load(Value pointer, Value offset, element_type type, std::int64_t lanes, std::int64_t multiple) {
  if (is_packed(type)) return load_packed(*this, pointer, offset, type, lanes, multiple);
  return to_compute(make<mlir::LLVM::LoadOp>(with_lanes(storage_type(type), lanes), address(pointer, offset, type),
                                             access_alignment(on, type, multiple)),
                    type);
}

Value code_builder::load_strided(Value pointer, Value offset, std::int64_t stride, element_type type,
                                 std::int64_t lanes) {
  if (lanes == 1 || stride == 1) return load(pointer, offset, type, lanes);
  if (stride == 0) return splat(load(pointer, offset, type, 1), lanes);
  if (is_packed(type)) return load_gathered(pointer, add(splat(offset, lanes), mul(lane_numbers(lanes), stride)), type);
  constexpr std::int64_t most_between = 4, fewest_lanes = 4;
  if (on.reads_between && std::abs(stride) <= most_between && lanes >= fewest_lanes)
    return to_compute(load_between(pointer, offset, stride, type, lanes), type);
  values stored;
  for (std::int64_t i = 0; i < lanes; ++i)
    stored.push_back(make<mlir::LLVM::LoadOp>(storage_type(type), address(pointer, add(offset, i * stride), type),
                                              storage_alignment(type)));
  return to_compute(from_lanes(stored), type);
}

Value code_builder::load_between(Value pointer, Value offset, std::int64_t stride, element_type type,
                                 std::int64_t lanes) {
  const std::int64_t distance = std::abs(stride), first = stride < 0 ? (lanes - 1) * stride : 0;
  Value result;
  for (std::int64_t part = 0; part < distance; ++part) {
    // The last vector ends with the last element, because the next one may be outside of the buffer.
    const std::int64_t begin = std::min(part * lanes, (lanes - 1) * distance + 1 - lanes);
    Value loaded =
        make<mlir::LLVM::LoadOp>(with_lanes(storage_type(type), lanes),
                                 address(pointer, add(offset, first + begin), type), storage_alignment(type));
    llvm::SmallVector<std::int64_t> order;
    for (std::int64_t i = 0; i < lanes; ++i) {
      const std::int64_t at = (stride < 0 ? lanes - 1 - i : i) * distance, here = at / lanes;
      order.push_back(here == part ? lanes + at - begin : i);
    }
    result = make<mlir::vector::ShuffleOp>(result ? result : loaded, loaded, order);
  }
  return result;
}

Value code_builder::load_gathered(Value pointer, Value offsets, element_type type) {
  std::int64_t lanes = lanes_of(offsets);
  values stored;
  for (std::int64_t i = 0; i < lanes && is_packed(type); ++i)
    stored.push_back(load_packed(*this, pointer, lane(offsets, i), type, 1, 1));
  if (is_packed(type)) return from_lanes(stored);
  for (std::int64_t i = 0; i < lanes; ++i)
    stored.push_back(make<mlir::LLVM::LoadOp>(storage_type(type), address(pointer, lane(offsets, i), type),
                                              storage_alignment(type)));
  return to_compute(from_lanes(stored), type);
}

void code_builder::store(Value pointer, Value offset, element_type type, Value v, std::int64_t multiple) {
  make<mlir::LLVM::StoreOp>(to_storage(v, type), address(pointer, offset, type), access_alignment(on, type, multiple));
}

Value code_builder::stack(element_type type, std::int64_t elements) {
  mlir::OpBuilder::InsertionGuard guard(builder);
  Value count = constant(elements);
  builder.setInsertionPointAfterValue(count);
  return make<mlir::LLVM::AllocaOp>(mlir::LLVM::LLVMPointerType::get(builder.getContext(), on.stack_space),
                                    storage_type(type), count, 64u);
}

}  // namespace kiln::codegen
