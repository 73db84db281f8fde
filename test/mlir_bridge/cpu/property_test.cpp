// Random pointwise fusions: DAGs of elementwise and movement operations must give the same results as the reference.
#include "harness.hpp"

#include <algorithm>

namespace kiln::test {
namespace {

class generator {
 public:
  explicit generator(unsigned seed) : random_(seed) {}

  std::unique_ptr<module> make() {
    auto m = std::make_unique<module>("random");
    std::vector<value> pool;
    std::int64_t count = 1 + pick(3);
    for (std::int64_t i = 0; i < count; ++i)
      pool.push_back(m->add_parameter("input" + std::to_string(i), f32(random_dims())));
    for (std::int64_t i = 0, steps = 2 + pick(7); i < steps; ++i) pool.push_back(grow(*m, pool));
    m->set_outputs({pool.back()}, {"output"});
    m->erase_dead();
    return m;
  }

 private:
  std::int64_t pick(std::int64_t n) { return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random_); }
  std::vector<dim> random_dims() {
    std::vector<dim> dims;
    for (std::int64_t i = 0, rank = 1 + pick(3); i < rank; ++i)
      dims.push_back(pick(4) == 0 ? 1 : 2 + pick(i == rank - 1 ? 40 : 6));
    return dims;
  }
  // Returns another value of the same shape: one from the pool, a broadcast one, or the value itself.
  value partner(module& m, const std::vector<value>& pool, value v) {
    for (int attempt = 0; attempt < 6; ++attempt) {
      value other = pool[static_cast<std::size_t>(pick(static_cast<std::int64_t>(pool.size())))];
      auto from = other.type().static_dims(), to = v.type().static_dims();
      if (from == to) return other;
      bool fits = from.size() <= to.size();
      for (std::size_t i = 0; fits && i < from.size(); ++i)
        fits = from[i] == 1 || from[i] == to[to.size() - from.size() + i];
      if (fits) return m.add(broadcast{v.type().dims}, {other});
    }
    return v;
  }

  value grow(module& m, const std::vector<value>& pool) {
    value v = pool[pool.size() - 1 -
                   static_cast<std::size_t>(pick(std::min<std::int64_t>(2, static_cast<std::int64_t>(pool.size()))))];
    auto dims = v.type().static_dims();
    auto rank = static_cast<std::int64_t>(dims.size());
    auto axis = static_cast<std::size_t>(pick(rank));
    switch (pick(9)) {
      case 0: return m.add(elementwise{scalar_function::add}, {v, partner(m, pool, v)});
      case 1: return m.add(elementwise{scalar_function::max}, {v, partner(m, pool, v)});
      case 2: return m.add(elementwise{scalar_function::tanh}, {v});
      case 3: {
        std::vector<std::int64_t> permutation(dims.size());
        for (std::size_t i = 0; i < permutation.size(); ++i) permutation[i] = static_cast<std::int64_t>(i);
        std::ranges::shuffle(permutation, random_);
        return m.add(transpose{permutation}, {v});
      }
      case 4: {
        slice op{std::vector<std::int64_t>(dims.size(), 0), v.type().dims, std::vector<std::int64_t>(dims.size(), 1)};
        op.starts[axis] = pick(dims[axis]);
        op.lengths[axis] = 1 + pick(dims[axis] - op.starts[axis]);
        if (pick(3) == 0)
          op.starts[axis] = dims[axis] - 1, op.steps[axis] = -1, op.lengths[axis] = 1 + pick(dims[axis]);
        return m.add(op, {v});
      }
      case 5: {
        pad op{std::vector<std::int64_t>(dims.size(), 0), std::vector<std::int64_t>(dims.size(), 0),
               dims[axis] > 3 && pick(2) ? pad_mode::reflect : pad_mode::constant_, 0.5};
        op.before[axis] = pick(3);
        op.after[axis] = pick(3);
        return m.add(op, {v});
      }
      case 6: return m.add(concat{static_cast<std::int64_t>(axis)}, {v, partner(m, pool, v)});
      case 7: {
        // Merge two neighbours, or move a factor between them.
        std::vector<dim> to = v.type().dims;
        if (rank > 1 && axis + 1 < dims.size()) {
          to[axis] = dims[axis] * dims[axis + 1];
          to.erase(to.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
        } else if (dims[axis] % 2 == 0) {
          to[axis] = dims[axis] / 2;
          to.insert(to.begin() + static_cast<std::ptrdiff_t>(axis), 2);
        }
        return m.add(reshape{to}, {v});
      }
      default:
        return m.add(elementwise{scalar_function::mul},
                     {v, m.add(broadcast{v.type().dims}, {m.add_constant(literal::scalar(element_type::f32, 0.75))})});
    }
  }

  std::mt19937 random_;
};

class random_fusion : public testing::TestWithParam<unsigned> {};

TEST_P(random_fusion, agrees_with_the_reference) {
  for (unsigned i = 0; i < 8; ++i) {
    unsigned seed = GetParam() * 8 + i;
    SCOPED_TRACE("seed " + std::to_string(seed));
    check(*generator(seed).make(), seed, 1, tolerance{5e-5, 5e-6});
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(map, random_fusion, testing::Range(0u, 25u));

}  // namespace
}  // namespace kiln::test
