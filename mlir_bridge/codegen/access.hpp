// Analyses how the loads of a fusion depend on the loop axes. From this follow which adjacent axes can be collapsed
// into one loop, where a loop must be split so that concat and pad cost nothing inside the pieces, and whether a
// transpose needs tiles.
#pragma once

#include <algorithm>
#include <set>
#include <vector>

#include "mlir_bridge/codegen/kernel_emitter.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"

namespace kiln {
struct pad;
}

namespace kiln::codegen {

class access_analysis {
 public:
  // The loop axes are those of `domain`. add_root adds a value that is evaluated at the loop's own position.
  access_analysis(const kernel_emitter& e, std::vector<dim> domain) : e_(e), domain_(std::move(domain)) {}
  void add_root(value v);
  // Adds a larger tensor into which a root is stored.
  void add_window(const buffer& b);
  // Says that the index along an axis of the domain is needed by itself.
  void add_axis(std::size_t axis) { use(identity()[axis]); }

  // Returns the maximal runs: lists of adjacent domain axes, outermost first, that every access treats as one long
  // axis. Axes of extent 1 are in no run. To address a run, use the index for its last axis and 0 for the others.
  std::vector<std::vector<std::size_t>> runs() const;
  // Returns the positions along the last domain axis where the code changes (0 and the extent are not among them).
  // Empty if the axis is open.
  std::vector<std::int64_t> cuts() const;
  // Returns the axis along which some load is contiguous while the load is strided along the last axis. nullopt for
  // kernels without transposes.
  std::optional<std::size_t> transposed_axis() const;

 private:
  // A position along one axis as an affine function of the loop indices: offset + Σ coefficient × index. `affine` is
  // false for any other function.
  struct form {
    bool affine = true;
    std::vector<dim> coefficients;
    dim offset = 0;
    friend bool operator<(const form& a, const form& b) {
      if (a.affine != b.affine) return a.affine < b.affine;
      if (a.coefficients != b.coefficients)
        return std::ranges::lexicographical_compare(a.coefficients, b.coefficients, dim_order());
      return dim_order()(a.offset, b.offset);
    }
  };
  struct coefficient_order {
    bool operator()(const std::vector<dim>& a, const std::vector<dim>& b) const {
      return std::ranges::lexicographical_compare(a, b, dim_order());
    }
  };
  using forms = std::vector<form>;
  forms identity() const;
  form nothing() const { return {true, std::vector<dim>(domain_.size(), 0), 0}; }
  static form opaque() { return {false, {}, 0}; }
  form scaled(const form& f, const dim& factor, const dim& offset) const;
  form sum(const form& a, const form& b) const;
  // Follows v, of which the element at `where` is needed, to the buffers that it is loaded from.
  void trace(value v, const forms& where);
  void trace_broadcast(value v, const forms& where);
  void trace_pad(const pad& op, value input, const forms& where);
  void trace_concat(const instruction& node, std::size_t axis, const forms& where);
  void trace_gathers(const instruction& node, const forms& where);
  void use(const form& f);
  void cut_at(const form& f, const dim& boundary);
  void load(const buffer& b, const forms& where);
  forms reshaped(const forms& where, const std::vector<dim>& from, const std::vector<dim>& to);

  const kernel_emitter& e_;
  std::vector<dim> domain_;
  std::set<std::vector<dim>, coefficient_order> used_;
  std::set<std::int64_t> cuts_;
  std::set<std::pair<value, forms>> seen_;
  std::vector<std::vector<dim>> loads_;
};

}  // namespace kiln::codegen
