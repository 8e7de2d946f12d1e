"""The paper, one pure function per equation; torch only, differentiable, any leading dimensions."""
