def Kiln_CacheUpdateOp : Kiln_Operation<"cache_update"> {
  let summary = "The cache with `rows` written along `axis`, from `positions` on; with a `layer`, in its part of the batches.";
  let arguments = (ins AnyRankedTensor:$cache, AnyRankedTensor:$rows, AnyRankedTensor:$positions,
                       Optional<AnyRankedTensor>:$layer, I64Attr:$axis);
  let results = (outs AnyRankedTensor:$result);
}
