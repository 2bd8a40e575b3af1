"""Demo of `edit_success`: paste rows as CSV, read the numbers."""

from __future__ import annotations

from seesaw_cf.metrics.demo import Demo

EXAMPLE = """\
case_id,test,pre_new,pre_true,post_new,post_true,tokens_right,tokens_kept,n_tokens,generated
1,rewrite,-5,-1,-0.1,-3,2,0,2,1
1,paraphrase,-5,-1,-0.5,-2,1,0,2,0
1,neighborhood,-5,-1,-6,-0.5,1,2,2,0
2,rewrite,-4,-2,-0.3,-2,1,0,1,1
2,paraphrase,-4,-2,-3,-2,0,1,1,0
2,neighborhood,-4,-2,-2,-1,1,1,1,1
"""
demo = Demo("edit_success", "The same words mean different things: read the protocol beside the number.", EXAMPLE)

if __name__ == "__main__":
    demo.page().launch()
